"""Who takes part in the merges, against who could (DESIGN section 9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.analysis.arrays import spans
from workbench.analysis.arrays.presence import faults, presences
from workbench.analysis.arrays.tables import Array, Tables, events_of, learner_count
from workbench.protocol.records import Kind, process_of


@dataclass(frozen=True)
class Participation:
    """Participation by merge and learner.

    Attributes
    ----------
    included : ndarray (merge, learner) of bool
        Whether the learner's contribution is in the merge.
    expected : ndarray (merge, learner) of bool
        Healed, connected, and under no injected fault from the opening of the round to its close.
    alive, reachable : ndarray (merge, learner) of bool
        Its process lived, and it was connected (heartbeats), at the merge.
    """

    included: Array
    expected: Array
    alive: Array
    reachable: Array

    @property
    def per_learner(self) -> Array:
        """Included of the expected, (learner,); NaN for a learner that was never expected."""
        with np.errstate(invalid="ignore"):
            return (self.included & self.expected).sum(0) / self.expected.sum(0)

    @property
    def share(self) -> float:
        """Included of the expected over all merges and learners; NaN if nobody was ever expected."""
        count = int(self.expected.sum())
        return float((self.included & self.expected).sum() / count) if count else float("nan")


def participation(tables: Tables) -> Participation:
    """Participation in every merge; contributions of learners that were not expected do not count."""
    merges, count = tables["merges"], learner_count(tables)
    included = np.zeros((len(merges["event"]), count), bool)
    width = min(count, merges["included"].shape[1] if merges["included"].ndim == 2 else 0)
    included[:, :width] = merges["included"][:, :width] == 1
    merged_ns = tables["events"]["time_ns"][merges["event"]]
    opened, closed = windows(tables)
    found, every = faults(tables), presences(tables)
    expected, alive, reachable = (np.zeros_like(included) for _ in range(3))
    for learner, presence in enumerate(every):
        faulty = found.spans(process_of(learner))
        expected[:, learner] = spans.contains(presence.expected, opened, closed) & ~spans.touches(
            faulty, opened, closed
        )
        alive[:, learner] = spans.inside(presence.alive, merged_ns)
        reachable[:, learner] = spans.inside(presence.connected, merged_ns)
    return Participation(included, expected, alive, reachable)


def windows(tables: Tables) -> tuple[Array, Array]:
    """When the round of each merge was opened, and when it was closed [ns], (merge,) each."""
    merges = tables["merges"]
    merged_ns = tables["events"]["time_ns"][merges["event"]]
    return _opened(tables), np.where(merges["commit_ns"] >= 0, merges["commit_ns"], merged_ns)


def _opened(tables: Tables) -> Array:
    """When the round of each merge was first opened in its epoch; the merge itself where no record says so."""
    events, merges = tables["events"], tables["merges"]
    opened = events_of(tables, Kind.ROUND_OPENED)
    result = events["time_ns"][merges["event"]].copy()
    keys = events["epoch"][opened].astype(np.int64) << 40 | events["round"][opened]
    keys, first = np.unique(keys, return_index=True)
    wanted = merges["epoch"].astype(np.int64) << 40 | merges["round"]
    at = np.searchsorted(keys, wanted)
    known = at < len(keys)
    known[known] = keys[at[known]] == wanted[known]
    result[known] = events["time_ns"][opened[first[at[known]]]]
    return result
