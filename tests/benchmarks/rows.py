"""Rows of a benchmark's table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One measured figure.

    Attributes
    ----------
    name, unit : str
    value : float
    budget : float or None
        From DESIGN section 7, None where none is set.
    met : bool
        Whether the budget is kept; True without one.
    """

    name: str
    value: float
    unit: str
    budget: float | None
    met: bool


def print_rows(rows: Iterable[Any]) -> None:
    """Print the figures, each beside its budget."""
    for name, value, unit, budget, met in rows:
        beside = "" if budget is None else f"budget {budget:g}: {'met' if met else 'MISSED'}"
        print(f"{name:<58} {value:>14,.4g} {unit:<14} {beside}".rstrip())
