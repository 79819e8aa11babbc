"""Versions of fragments that a replay has made: kept, so that a second look at the weights computes nothing."""

from __future__ import annotations

import numpy as np

from workbench.replay.program import Merged

KEPT_BYTES = 1 << 30
"""Merged fragments that are kept [bytes]; beyond that the oldest go."""


class KeptVersions:
    """Merged fragments by (fragment, version): the last of each fragment, and others up to a number of bytes.

    Parameters
    ----------
    initial : list of arrays (size,)
        Version 0 of each fragment; always there.
    merges : list of Merged
        Of the tape, in order.
    limit_bytes : int
    """

    def __init__(self, initial: list[np.ndarray], merges: list[Merged], limit_bytes: int = KEPT_BYTES) -> None:
        self._initial, self._merges, self._limit = initial, merges, limit_bytes
        self._kept: dict[tuple[int, int], np.ndarray] = {}
        self._last: dict[int, int] = {}
        self._bytes = 0

    def keep(self, fragment: int, version: int, flat: np.ndarray) -> None:
        """Keep a copy; the ones that came first go if there are too many, but never the last one of a fragment."""
        known = self._kept.pop((fragment, version), None)
        self._bytes -= 0 if known is None else known.nbytes
        copy = flat.copy()
        copy.setflags(write=False)
        self._kept[fragment, version] = copy
        self._bytes += copy.nbytes
        self._last[fragment] = version
        if self._bytes > self._limit:
            self._let_go()

    def _let_go(self) -> None:
        for p, version in [key for key in self._kept if self._last[key[0]] != key[1]]:
            if self._bytes <= self._limit:
                return
            self._bytes -= self._kept.pop((p, version)).nbytes

    def versions(self, merge: int) -> list[int]:
        """Version of each fragment just after a merge."""
        found = [0] * len(self._initial)
        for step in self._merges[: merge + 1]:
            found[step.fragment] = step.version
        return found

    def weights(self, merge: int) -> list[np.ndarray] | None:
        """Fragments (size,) just after a merge, read-only; None if some are not kept."""
        found = []
        for p, version in enumerate(self.versions(merge)):
            flat = self._kept.get((p, version)) if version else self._initial[p]
            if flat is None:
                return None
            found.append(flat)
        return found
