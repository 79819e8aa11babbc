"""Storage of one fragment at the syncer: slots for Theta and outer state, of which one is current.

A merge writes a slot that is not current, the journal is told, then that slot becomes current (PROTOCOL section 6);
so a process that dies at any point leaves the version that the journal names whole.  The arrays may lie in a mapped
file: a file of zeros is a set of blank slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.algorithms.compiled import aligned
from workbench.algorithms.digest import combine, digest

VERSION, RULE, STEPS = 0, 1, 2
HEADER_WORDS = 4
"""Columns of the header: version + 1 (0: blank or half written), tag of the outer optimiser (0: fresh state),
outer steps made with the state, one spare."""


class FragmentSlots(NamedTuple):
    """Slots of one fragment.

    Attributes
    ----------
    theta : float32 array, shape (slot, size)
    outer : float32 array, shape (slot, vector, size)
        State of the outer optimiser; a rule uses its first ``vectors`` rows.
    header : int64 array, shape (slot, HEADER_WORDS)
    """

    theta: np.ndarray
    outer: np.ndarray
    header: np.ndarray

    def find(self, version: int) -> int:
        """Slot that holds ``version``, -1 if none does."""
        found = np.flatnonzero(self.header[:, VERSION] == version + 1)
        return int(found[0]) if version >= 0 and found.size else -1

    def version(self, slot: int) -> int:
        """Version in ``slot``, -1 if blank."""
        return int(self.header[slot, VERSION]) - 1

    def free(self, current: int) -> int:
        """Slot that the next merge may write: blank or newer than the current one, else the oldest."""
        now = self.version(current)
        others = [slot for slot in range(len(self.header)) if slot != current]
        return min(others, key=lambda slot: -1 if self.version(slot) > now else self.version(slot))


def slots_needed(anchor: str, anchors_kept: int) -> int:
    """2 slots per fragment, or ``anchors_kept`` + 2 with anchor ``base``."""
    return anchors_kept + 2 if anchor == "base" else 2


def allocate_slots(size: int, slots: int, vectors: int) -> FragmentSlots:
    """Blank slots in fresh memory, for a fragment of ``size`` parameters and an outer state of ``vectors`` rows."""
    return FragmentSlots(
        aligned((slots, size)),
        aligned((slots, vectors, size)),
        np.zeros((slots, HEADER_WORDS), np.int64),
    )


def rule_tag(name: str) -> int:
    """Number by which a header names an outer optimiser, never 0."""
    return digest(name.encode()) >> 1 | 1


def outer_digest(name: str, steps: int, vector_digests: list[int]) -> int:
    """Digest of an outer state: rule, steps made with it, and the digest of each vector in order."""
    return combine([digest(name.encode()), steps, *vector_digests])
