"""The syncer's arithmetic: Theta, outer state, merge and outer step, on flat host vectors.

It loads no model code.  One object serves one thread at a time; readers of the current slot may go on while `merge`
writes another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.algorithms import codecs
from workbench.algorithms.checking import ContributionCheck, check_contribution
from workbench.algorithms.compiled import aligned
from workbench.algorithms.contributions.anchored import anchor_of
from workbench.algorithms.digest import digest
from workbench.algorithms.fragment_slots import RULE, STEPS, VERSION, FragmentSlots, allocate_slots, rule_tag
from workbench.algorithms.fragments import Fragmentation
from workbench.algorithms.merge_rows import MergeRow, merge_rows
from workbench.algorithms.merging import MergeInfo, MergeJob, MergeSettings, merge_fragment, scratch_size
from workbench.algorithms.outer import OUTER_OPTIMIZERS
from workbench.algorithms.slots import Key, OuterConfig

__all__ = ["ContributionCheck", "MergeInfo", "MergeSettings", "SyncerArithmetic"]

OUTER_VECTORS = max(rule.vectors for rule in OUTER_OPTIMIZERS.values())
"""Rows of outer state that a slot must hold, so that the optimiser can be changed live."""


class OuterState(NamedTuple):
    """Outer state of a fragment: ``rule`` (``""``: fresh), outer ``steps`` made, ``vectors`` (vector, size)."""

    rule: str
    steps: int
    vectors: np.ndarray


class SyncerArithmetic:
    """Theta and outer state of all fragments, in slots of which one per fragment is current.

    Parameters
    ----------
    fragmentation : Fragmentation
    initial : list of float32 arrays (size,)
        Theta of each fragment as version 0.  Not used for slots that already hold something: call `restore` for those.
    slots : sequence of FragmentSlots, optional
        Storage from outside, one per fragment (a mapped file); fresh memory by default.
    slot_count : int
        Slots per fragment when memory is allocated here (`slots_needed`).

    Raises
    ------
    ValueError
        If sizes do not fit the fragmentation.
    """

    def __init__(
        self,
        fragmentation: Fragmentation,
        initial: Sequence[np.ndarray],
        slots: Sequence[FragmentSlots] | None = None,
        slot_count: int = 2,
    ) -> None:
        self._layouts = [fragmentation.layout(p) for p in range(fragmentation.fragments)]
        sizes = fragmentation.sizes
        self._slots = list(slots) if slots else [allocate_slots(n, slot_count, OUTER_VECTORS) for n in sizes]
        self._current = [-1] * len(sizes)
        self._scratch: np.ndarray | None = None
        for p, size in enumerate(sizes):
            _check_slots(p, size, self._slots[p])
            if not self._slots[p].header.any():
                self.install(p, 0, initial[p])

    def install(self, p: int, version: int, theta: np.ndarray, outer: OuterState | None = None) -> None:
        """Make (size,) values the current version of fragment ``p``, all other slots blank: a start, or a snapshot."""
        slots = self._slots[p]
        slots.header[:] = 0
        slots.theta[0] = self._sized(p, theta)
        if outer is not None and outer.rule:
            slots.outer[0, : len(outer.vectors)] = outer.vectors
            slots.header[0, RULE], slots.header[0, STEPS] = rule_tag(outer.rule), outer.steps
        slots.header[0, VERSION] = version + 1
        self._current[p] = 0

    def restore(self, p: int, version: int, expected_digest: int | None = None) -> bool:
        """Make the slot that holds ``version`` current, as the journal says; newer slots become blank.

        Parameters
        ----------
        p, version : int
        expected_digest : int, optional
            Digest of Theta in the journal.

        Returns
        -------
        bool
            False, and nothing changed, if no slot holds that version with that digest.
        """
        slots = self._slots[p]
        slot = slots.find(version)
        if slot < 0 or (expected_digest is not None and digest(slots.theta[slot]) != expected_digest):
            return False
        for other in range(len(slots.header)):
            if slots.version(other) > version:
                slots.header[other] = 0
        self._current[p] = slot
        return True

    def theta(self, p: int) -> np.ndarray:
        """Current Theta of fragment ``p``, a read-only view (size,)."""
        return _read_only(self._slots[p].theta[self._slot(p)])

    def encode_update(self, p: int) -> np.ndarray:
        """What an UPDATE carries: the current Theta in float32, a read-only view (size,)."""
        return self.theta(p)

    def version(self, p: int) -> int:
        """Current version of fragment ``p``."""
        return self._slots[p].version(self._slot(p))

    def anchor(self, p: int, version: int) -> np.ndarray:
        """Theta of fragment ``p`` as of a kept version, a read-only view (size,).

        Raises
        ------
        LookupError
            If no slot holds it.
        """
        return self._kept(p, version, written=-1)

    def outer_state(self, p: int) -> OuterState:
        """Copy of the outer state of fragment ``p``, for a snapshot."""
        slots, slot = self._slots[p], self._slot(p)
        names = {rule_tag(name): name for name in OUTER_OPTIMIZERS}
        rule = names.get(int(slots.header[slot, RULE]), "")
        vectors = OUTER_OPTIMIZERS[rule].vectors if rule else 0
        return OuterState(rule, int(slots.header[slot, STEPS]), slots.outer[slot, :vectors].copy())

    def copy_versions(self, versions: Sequence[int]) -> tuple[list[np.ndarray], list[OuterState]] | None:
        """Copies of Theta and outer state of exactly these versions, in a thread beside `merge`.

        Returns
        -------
        tuple or None
            None if one of them has been written over meanwhile.
        """
        thetas, outers = [], []
        names = {rule_tag(name): name for name in OUTER_OPTIMIZERS}
        for slots, version in zip(self._slots, versions, strict=True):
            slot = slots.find(version)
            if slot < 0:
                return None
            rule = names.get(int(slots.header[slot, RULE]), "")
            vectors = OUTER_OPTIMIZERS[rule].vectors if rule else 0
            thetas.append(slots.theta[slot].copy())
            outers.append(OuterState(rule, int(slots.header[slot, STEPS]), slots.outer[slot, :vectors].copy()))
            if slots.version(slot) != version:
                return None
        return thetas, outers

    def reset_outer(self, p: int) -> None:
        """Let the next merge of fragment ``p`` start from a fresh outer state."""
        self._slots[p].header[self._slot(p), RULE] = 0
        self._slots[p].header[self._slot(p), STEPS] = 0

    def decode(self, p: int, payload: Any, codec: str, base_version: int) -> np.ndarray:
        """Parameters (size,), float32, of a contribution's payload.

        Raises
        ------
        ValueError
            If the payload has another size.
        LookupError
            If the base version is not kept.
        """
        return codecs.decode(p, payload, self.anchor(p, base_version), codec)

    def check(self, p: int, array: np.ndarray) -> ContributionCheck:
        """Look at a decoded contribution (size,): finite, digest, norm of the difference to the current Theta."""
        return check_contribution(self.theta(p), self._sized(p, array))

    def merge(
        self,
        p: int,
        new_version: int,
        learners: Sequence[int],
        contributions: Sequence[np.ndarray],
        weights: Sequence[float],
        base_versions: Sequence[int],
        settings: MergeSettings,
    ) -> MergeInfo:
        """Merge contributions to fragment ``p`` and make the outer step, into a slot that is not current.

        Nothing that readers of the current version see changes until `commit`.  An outer optimiser other than that
        of the merge before starts with fresh state.

        Parameters
        ----------
        p, new_version : int
            Fragment, and the version that is made: the current one + 1.
        learners, contributions, weights, base_versions : sequences, shape (learner,)
            In any order: ids, parameters (size,) as decoded, weights w of at least 0, base of each.
        settings : MergeSettings

        Returns
        -------
        MergeInfo
            With ``used`` empty if all weights are 0: then nothing was written.

        Raises
        ------
        ValueError
            If the request does not fit (version, lengths, a learner twice, weights below 0 or not finite).
        LookupError
            If anchor = base needs a version that is not kept.
        """
        if new_version != self.version(p) + 1:
            raise ValueError(f"version {new_version} of fragment {p} cannot follow {self.version(p)}; expected + 1")
        rows = merge_rows(p, learners, contributions, weights, base_versions)
        if not rows:
            return MergeInfo(0, 0, 0.0, (), (), ())
        slots, slot = self._slots[p], self._slots[p].free(self._slot(p))
        job = self._job(p, new_version, rows, settings, slot)
        slots.header[slot, VERSION] = 0
        info = merge_fragment(job, self._scratch_for())
        slots.header[slot, RULE], slots.header[slot, STEPS] = rule_tag(settings.outer), job.steps + 1
        slots.header[slot, VERSION] = new_version + 1
        return info

    def commit(self, p: int, version: int) -> None:
        """Make a merged version current (it stays so if it is already).

        Raises
        ------
        LookupError
            If no slot holds it.
        """
        slot = self._slots[p].find(version)
        if slot < 0 or version < self.version(p):
            raise LookupError(f"version {version} of fragment {p} was not merged; current is {self.version(p)}")
        self._current[p] = slot

    def _job(self, p: int, new_version: int, rows: list[MergeRow], settings: MergeSettings, slot: int) -> MergeJob:
        slots, current, theta = self._slots[p], self._slot(p), self.theta(p)
        rule = OUTER_OPTIMIZERS[settings.outer]
        fresh = slots.header[current, RULE] != rule_tag(settings.outer)
        config = OuterConfig(settings.outer_rate, settings.outer_momentum)
        by_base = settings.anchor == "base"
        return MergeJob(
            layout=self._layouts[p],
            settings=settings,
            key=Key(settings.seed, p, new_version),
            learners=tuple(row.learner for row in rows),
            ages=tuple(new_version - 1 - row.base_version for row in rows),
            anchors=tuple(
                anchor_of(settings.anchor, theta, self._kept(p, row.base_version, slot) if by_base else theta)
                for row in rows
            ),
            values=tuple(self._sized(p, row.values) for row in rows),
            weights=np.array([row.weight for row in rows]),
            theta=theta,
            state=rule.init(config, theta.size) if fresh else slots.outer[current, : rule.vectors],
            steps=0 if fresh else int(slots.header[current, STEPS]),
            theta_out=slots.theta[slot],
            state_out=slots.outer[slot, : rule.vectors],
        )

    def _kept(self, p: int, version: int, written: int) -> np.ndarray:
        """Theta of a version, which must not lie in the slot that is about to be ``written``."""
        slots, current = self._slots[p], self.version(p)
        slot = slots.find(version)
        if slot < 0 or slot == written or version > current:
            held = (slots.version(s) for s in range(len(slots.header)) if s != written)
            kept = sorted(v for v in held if 0 <= v <= current)
            raise LookupError(f"version {version} of fragment {p} is not kept; kept are {kept}, current is {current}")
        return _read_only(slots.theta[slot])

    def _slot(self, p: int) -> int:
        if self._current[p] < 0:
            raise RuntimeError(f"fragment {p} lies in slots of an earlier process; call restore or install first")
        return self._current[p]

    def _sized(self, p: int, array: np.ndarray) -> np.ndarray:
        size = self._layouts[p].size
        if array.shape != (size,) or array.dtype != np.float32:
            raise ValueError(
                f"fragment {p} came as {array.dtype} of shape {array.shape}; expected float32 of shape ({size},)"
            )
        return np.ascontiguousarray(array)

    def _scratch_for(self) -> np.ndarray:
        if self._scratch is None:
            self._scratch = aligned((max(scratch_size(layout) for layout in self._layouts),))
        return self._scratch


def _check_slots(p: int, size: int, slots: FragmentSlots) -> None:
    count = len(slots.header)
    if slots.theta.shape != (count, size) or slots.outer.shape[::2] != (count, size) or count < 2:
        raise ValueError(
            f"slots of fragment {p} have shapes {slots.theta.shape} and {slots.outer.shape}; expected "
            f"({count}, {size}) and ({count}, vectors, {size}) with at least 2 slots"
        )


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view
