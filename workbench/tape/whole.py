"""Numbers that people type to say which event or merge they mean."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from workbench.tape.errors import TapeError


def whole(number: Any, what: str) -> int:
    """The number, if it is a whole one.

    Raises
    ------
    TapeError
        It is something else, such as a text, a fraction or a truth value.
    """
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise TapeError(f"{what} {number!r}; allowed: a whole number, negative ones count from the end")
    return int(number)
