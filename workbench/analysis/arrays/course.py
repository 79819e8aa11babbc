"""How shares went over the time of a run: its span cut into bins of equal length."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from workbench.analysis.arrays.participation import Participation
from workbench.analysis.arrays.presence import STOPS, faults
from workbench.analysis.arrays.spans import covered
from workbench.analysis.arrays.tables import NS, Array, Tables, learner_count, run_span
from workbench.analysis.arrays.time_shares import rolled_back_steps, shares_within
from workbench.protocol.records import process_of


def edges_ns(tables: Tables, bins: int) -> Array:
    """Edges of the bins, (bins + 1,) [ns], from the start of rounds to the close."""
    began, closed = run_span(tables)
    return began + (closed - began) * np.arange(bins + 1, dtype=float) / bins


def useful_course(tables: Tables, bins: int) -> Array:
    """Useful time of each learner over the length of each bin, (learner, bin).

    A step counts as in goodput (end - start - injected - waited, not rolled back, stops of the process taken out),
    spread evenly over its time.  An outage counts as nothing, as does the time before the learner came.
    """
    edges, steps, struck = edges_ns(tables, bins), tables["steps"], faults(tables)
    idle = np.maximum(steps["injected_ns"], 0) + np.maximum(steps["waited_ns"], 0)
    counted = ~rolled_back_steps(tables)
    found = np.zeros((learner_count(tables), bins))
    for learner in range(len(found)):
        mine = counted & (steps["learner"] == learner)
        stopped = struck.spans(process_of(learner), STOPS)
        low, high = steps["start_ns"][mine], steps["end_ns"][mine]
        moving = np.maximum(high - low - covered(stopped, low, high), 1)
        density = np.clip(1.0 - idle[mine] / moving, 0.0, 1.0)
        for at in range(bins):
            since, until = np.maximum(low, edges[at]), np.minimum(high, edges[at + 1])
            inside = np.maximum(until - since, 0.0) - covered(stopped, since, until)
            found[learner, at] = float((inside * density).sum())
    return np.round(found / max(float(edges[1] - edges[0]), 1.0), 9)


def shares_course(tables: Tables, bins: int) -> tuple[Array, Array]:
    """Useful time and badput by cause in each bin, all learners together.

    Returns
    -------
    useful_s : ndarray (bin,)
        [s]
    badput_s : ndarray (bin, cause)
        By `workbench.analysis.arrays.time_shares.CAUSES` [s]; with ``useful_s`` it adds up to the allocated time.
    """
    edges = edges_ns(tables, bins).astype(np.int64).tolist()
    found = shares_within(tables, list(pairwise(edges)))
    return np.array([f.useful_ns.sum() for f in found]) * NS, np.stack([f.badput_ns.sum(0) for f in found]) * NS


def participation_course(tables: Tables, found: Participation, bins: int) -> tuple[Array, Array, Array]:
    """Participation in the merges of each bin.

    Returns
    -------
    per_learner : ndarray (learner, bin)
        Included of the expected; NaN where the learner was expected in no merge.
    share : ndarray (bin,)
        The same over all learners.
    contributors : ndarray (bin,)
        Mean number of learners in a merge; NaN where there was no merge.
    """
    edges = edges_ns(tables, bins)
    merged_ns = tables["events"]["time_ns"][tables["merges"]["event"]]
    where = np.clip(np.searchsorted(edges, merged_ns, "right") - 1, 0, bins - 1)
    member = (where[:, None] == np.arange(bins)).astype(float)
    both = (found.included & found.expected).T @ member
    expected = found.expected.T @ member
    with np.errstate(invalid="ignore"):
        return (
            both / expected,
            both.sum(0) / expected.sum(0),
            found.included.sum(1).astype(float) @ member / member.sum(0),
        )
