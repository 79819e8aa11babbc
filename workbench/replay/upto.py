"""Where a replay stops: a consistent cut of the tape, as so many steps of each program."""

from __future__ import annotations

import xarray as xr

from workbench.replay.program import Programs, Step
from workbench.tape import TapeError
from workbench.tape.event_sets import Cut
from workbench.tape.whole import whole

Upto = int | Cut
"""A merge (row of /merges, from 0; negative counts from the end): its past and itself.  Or a cut of the tape."""


def merge_number(programs: Programs, merge: int) -> int:
    """Number of a merge from 0, counted from the end if it is negative.

    Raises
    ------
    TapeError
        When there is none.
    """
    total, merge = len(programs.merges), whole(merge, "merge")
    if not -total <= merge < total:
        numbered = f"merges 0 to {total - 1} (-1 is the last, -{total} the first)" if total else "no merge"
        raise TapeError(f"there is no merge {merge}; the tape holds {numbered}")
    return merge % total


def cut_of(tape: xr.DataTree, programs: Programs, upto: Upto) -> Cut:
    """The cut that is meant."""
    if isinstance(upto, Cut):
        return upto
    cut: Cut = tape.wb.cut(event=programs.merges[merge_number(programs, upto)].event)
    return cut


def limits(programs: Programs, cut: Cut) -> dict[int, int]:
    """How many steps of each program lie in a cut.

    A capture stands where its host copy was made, which may be earlier than its record: it is made on the way.
    """
    inside = cut.mask()
    return {process: _upto_last(steps, inside) for process, steps in programs.steps.items()}


def _upto_last(steps: list[Step], inside: object) -> int:
    return next((at for at in range(len(steps), 0, -1) if inside[steps[at - 1].event]), 0)  # type: ignore[index]


def restricted(programs: Programs, cut: Cut) -> Programs:
    """The programs up to a cut."""
    steps = {process: programs.steps[process][:limit] for process, limit in limits(programs, cut).items()}
    broken = programs.broken
    return Programs(steps, broken if broken is not None and broken.event in cut else None)
