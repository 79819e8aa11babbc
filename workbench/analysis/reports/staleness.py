"""How old contributions were when they were merged, and how far apart the folds of a fragment lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.analysis.arrays.participation import participation
from workbench.analysis.arrays.spread import spread
from workbench.analysis.arrays.staleness import behind, effective_period, staleness
from workbench.analysis.arrays.tables import Array, Tables, fragment_count, learner_count
from workbench.analysis.from_tape import config_of, sizes_of, tables_of
from workbench.analysis.labelled import Source
from workbench.config import RunConfig
from workbench.tape.schema import MERGED

MEASURES = ("versions", "steps", "rounds", "seconds", "lag")
SECONDS = ("seconds", "lag")
"""Those of the measures that are in seconds."""
UNUSUAL = (0.5, 1.5)
"""An effective period below or above these multiples of H deserves a warning."""


def report(source: Source, config: RunConfig | None = None) -> dict[str, Any]:
    """Report the staleness of the contributions that were merged.

    Returns
    -------
    dict
        ``contributions`` (merged); ``all``, ``by_learner`` and ``by_fragment``: for each of `MEASURES` ``count``,
        ``median``, ``p95`` and ``max`` (seconds and lag in s); ``behind`` by learner (mean over fragments of version -
        base after each merge while connected); ``period`` (H); ``effective_period`` by learner (``count`` of folds,
        ``median``, ``p95``, ``max`` in steps, ``below`` and ``above`` `UNUSUAL` x H, ``unusual``: whether the median
        is one of those).
    """
    tables, config = tables_of(source), config or config_of(source)
    found = staleness(tables)
    merged = found["fate"] == MERGED
    return {
        "contributions": int(merged.sum()),
        "all": _spreads(found, merged),
        "by_learner": [
            {"learner": m, **_spreads(found, merged & (found["learner"] == m))} for m in range(learner_count(tables))
        ],
        "by_fragment": [
            {"fragment": p, **_spreads(found, merged & (found["fragment"] == p))} for p in range(fragment_count(tables))
        ],
        "behind": _behind(source, tables),
        "period": config.period,
        "effective_period": _periods(tables, config.period),
    }


def _spreads(found: dict[str, Array], where: Array) -> dict[str, Any]:
    return {name: spread(found[name][where]) for name in MEASURES}


def _behind(source: Source, tables: Tables) -> list[dict[str, Any]]:
    _, versions = behind(tables, sizes_of(source))
    reachable = participation(tables).reachable
    return [
        {"learner": learner, **spread(np.where(reachable[:, learner], versions[:, learner], np.nan))}
        for learner in range(versions.shape[1])
    ]


def _periods(tables: Tables, period: int) -> list[dict[str, Any]]:
    found, rows = effective_period(tables, period), []
    low, high = UNUSUAL[0] * period, UNUSUAL[1] * period
    for learner in range(learner_count(tables)):
        steps = found["steps"][found["learner"] == learner]
        told = spread(steps)
        rows.append({
            "learner": learner,
            **told,
            "below": int((steps < low).sum()),
            "above": int((steps > high).sum()),
            "unusual": bool(told["count"] and not low <= told["median"] <= high),
        })  # fmt: skip
    return rows
