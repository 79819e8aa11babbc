"""Whether a question without a change gives the parent: bit for bit on its schedule, nearly in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

from msgspec.structs import astuple

from workbench.protocol.records import Kind, Record
from workbench.replay.counterfactual.comparing import same
from workbench.tape import open_tape


class Calibration(NamedTuple):
    """A run simulated again from its start without a change, against its tape, merge by merge in their order.

    Attributes
    ----------
    merges : list of int
        Of the parent, then of each child.
    interval_error : float
        Median relative error of the intervals between merges, of all children together; NaN without intervals.
    same_set : float
        Share of the merges, of all children together, that hold contributions of the same learners.
    """

    merges: list[int]
    interval_error: float
    same_set: float

    def text(self) -> str:
        """One line."""
        return (
            f"intervals between merges off by {self.interval_error:.2%} (median), the same learners in "
            f"{self.same_set:.1%} of the merges"
        )


def calibrated(parent: Sequence[Record], children: Sequence[Path]) -> Calibration:
    """Compare the merges of children with those of their parent; a merge that only one of them has is not the same."""
    there = _merges(parent)
    errors: list[float] = []
    alike, count, merges = 0, 0, [len(there)]
    for path in children:
        here = _merges(open_tape(path).wb.records())
        merges.append(len(here))
        alike += sum(a.detail["learners"] == b.detail["learners"] for a, b in zip(there, here, strict=False))
        count += max(len(there), len(here))
        pairs = zip(_intervals(there), _intervals(here), strict=False)
        errors += [abs(b - a) / max(1, a) for a, b in pairs]
    return Calibration(merges, median(errors) if errors else float("nan"), alike / count if count else float("nan"))


def _merges(records: Sequence[Record]) -> list[Record]:
    return [r for r in records if r.kind == Kind.MERGED]


def _intervals(merges: Sequence[Record]) -> list[int]:
    return [b.time_ns - a.time_ns for a, b in pairwise(merges)]


def unlike(parent: Sequence[Record], child: Path) -> int:
    """How many records are not the same in every column; those that only one of the two has among them."""
    made = open_tape(child).wb.records()
    pairs = zip(map(astuple, parent), map(astuple, made), strict=False)
    return sum(not same(a, b) for a, b in pairs) + abs(len(parent) - len(made))
