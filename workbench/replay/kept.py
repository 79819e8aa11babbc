"""Fragments that a replay has merged: kept, so that a second look at the weights computes nothing."""

from __future__ import annotations

import numpy as np

from workbench.protocol.records import SYNCER
from workbench.replay.program import Merged, Programs, Restored, SnapshotRecorded

KEPT_BYTES = 1 << 30
"""Merged fragments that are kept [bytes]; beyond that the oldest go."""


class KeptVersions:
    """Merged fragments by merge: the last of each fragment, and others up to a number of bytes.

    Parameters
    ----------
    initial : list of arrays (size,)
        Version 0 of each fragment; always there.
    programs : Programs
        Of the tape.
    limit_bytes : int
    """

    def __init__(self, initial: list[np.ndarray], programs: Programs, limit_bytes: int = KEPT_BYTES) -> None:
        self._initial, self._limit = initial, limit_bytes
        self._steps = programs.steps.get(SYNCER, [])
        self._kept: dict[int, np.ndarray] = {}
        self._last: dict[int, int] = {}
        self._bytes = 0

    def keep(self, merged: Merged, flat: np.ndarray) -> None:
        """Keep a copy; the ones that came first go if there are too many, but never the last one of a fragment."""
        known = self._kept.pop(merged.event, None)
        self._bytes -= 0 if known is None else known.nbytes
        copy = flat.copy()
        copy.setflags(write=False)
        self._kept[merged.event] = copy
        self._bytes += copy.nbytes
        self._last[merged.fragment] = merged.event
        if self._bytes > self._limit:
            self._let_go()

    def _let_go(self) -> None:
        newest = set(self._last.values())
        for event in [event for event in self._kept if event not in newest]:
            if self._bytes <= self._limit:
                return
            self._bytes -= self._kept.pop(event).nbytes

    def made_by(self, merge: int) -> list[int]:
        """Event of the merge that made each fragment as it was just after a merge; -1 for the run's first weights."""
        found = [-1] * len(self._initial)
        snapshots: dict[float, list[int]] = {}
        left = merge + 1
        for step in self._steps:
            if isinstance(step, Merged):
                found[step.fragment] = step.event
                left -= 1
                if not left:
                    break
            elif isinstance(step, SnapshotRecorded):
                snapshots[step.number] = list(found)
            elif isinstance(step, Restored):
                found = list(snapshots.get(step.number, found))
        return found

    def weights(self, merge: int) -> list[np.ndarray] | None:
        """Fragments (size,) just after a merge, read-only; None if some are not kept."""
        found = []
        for p, event in enumerate(self.made_by(merge)):
            flat = self._kept.get(event) if event >= 0 else self._initial[p]
            if flat is None:
                return None
            found.append(flat)
        return found
