"""How the staleness of merged contributions is distributed: by learner and fragment, and over time."""

from __future__ import annotations

import numpy as np

from workbench.analysis.arrays.course import edges_ns
from workbench.analysis.arrays.grouped import NAMES, grouped_spread
from workbench.analysis.arrays.staleness import staleness
from workbench.analysis.arrays.tables import Array, Tables, fragment_count, learner_count
from workbench.tape.schema import MERGED

MEASURES = ("versions", "steps", "rounds", "seconds", "lag")
"""DESIGN section 9."""


def by_learner_and_fragment(tables: Tables) -> dict[str, Array]:
    """Spread of each measure for every learner and fragment.

    Returns
    -------
    dict of str to ndarray (measure, learner, fragment)
        ``count``, ``median``, ``p95``, ``max``; NaN where nothing was merged.
    """
    found, merged = _merged(tables)
    learners, fragments = learner_count(tables), fragment_count(tables)
    group = found["learner"][merged].astype(np.int64) * fragments + found["fragment"][merged]
    return _stacked(found, merged, group, (learners, fragments))


def over_time(tables: Tables, bins: int) -> tuple[Array, dict[str, Array]]:
    """Spread of each measure in parts of equal length of the run, by the time of the merge.

    Returns
    -------
    edges_ns : ndarray (bins + 1,)
        From the start of rounds to the close.
    spreads : dict of str to ndarray (measure, bin)
        As `by_learner_and_fragment`.
    """
    found, merged = _merged(tables)
    edges = edges_ns(tables, bins)
    merged_ns = tables["events"]["time_ns"][tables["merges"]["event"][found["merge"][merged]]]
    where = np.clip(np.searchsorted(edges, merged_ns, "right") - 1, 0, bins - 1)
    return edges, _stacked(found, merged, where, (bins,))


def _merged(tables: Tables) -> tuple[dict[str, Array], Array]:
    found = staleness(tables)
    return found, np.flatnonzero((found["fate"] == MERGED) & (found["merge"] >= 0))


def _stacked(found: dict[str, Array], rows: Array, group: Array, shape: tuple[int, ...]) -> dict[str, Array]:
    told = [grouped_spread(found[name][rows], group, int(np.prod(shape))) for name in MEASURES]
    return {name: np.stack([part[name] for part in told]).reshape(len(MEASURES), *shape) for name in NAMES}
