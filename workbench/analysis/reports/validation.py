"""How the validation loss fell, by merges, tokens and time, and what it took to reach given losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.analysis.arrays.validation import reached, validation_curve
from workbench.analysis.from_tape import tables_of
from workbench.analysis.labelled import Source
from workbench.config import RunConfig

LADDER = (6.0, 5.0, 4.0, 3.5, 3.0, 2.75, 2.5, 2.25, *(tenth / 10 for tenth in range(20, 0, -1)))
"""Losses [nat] to ask for without others: round ones, the same for every run, finer where progress is slower."""
TENTHS = tuple(tenth / 10 for tenth in range(100, 0, -1))
"""Losses to ask for where a run passed none of the ladder."""
ASKED_MAX = 10


def report(source: Source, config: RunConfig | None = None, *, losses: Sequence[float] = ()) -> dict[str, Any]:
    """Report the validation loss.

    Parameters
    ----------
    source : tape or tables
    config : RunConfig, optional
        Not needed; taken as all reports take it.
    losses : sequence of float
        Losses to reach [nat]; by default those of `LADDER` that the run passed, the lowest `ASKED_MAX`.

    Returns
    -------
    dict
        ``evaluations``; ``first`` (of the untrained model, None without that), ``last``, ``best`` [nat];
        ``curve``: ``loss``, ``merges``, ``tokens`` (merged), ``tokens_processed``, ``time_s``, in order;
        ``reached``: for each loss the same numbers, on straight lines between evaluations, None if not reached.
    """
    curve = validation_curve(tables_of(source))
    found = curve["loss"].tolist()
    asked = list(losses) or _passed(LADDER, found) or _passed(TENTHS, found)
    return {
        "evaluations": len(found),
        "first": found[0] if found and curve["merges"][0] == 0 else None,
        "last": found[-1] if found else None,
        "best": min(found, default=None),
        "curve": {name: values.tolist() for name, values in curve.items()},
        "reached": reached(curve, asked),
    }


def _passed(ladder: Sequence[float], found: Sequence[float]) -> list[float]:
    """The lowest of the ladder's losses between the first of a run and its best."""
    return [loss for loss in ladder if found and min(found) <= loss < found[0]][-ASKED_MAX:]
