"""Arithmetic with numbers for the virtual-time driver: the same executors that real processes use."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.algorithms import orders
from workbench.algorithms.committed import mapped_slots
from workbench.algorithms.digest import digest
from workbench.algorithms.fragment_slots import slots_needed
from workbench.algorithms.poisons import Poison
from workbench.algorithms.syncer_arithmetic import OUTER_VECTORS, SyncerArithmetic
from workbench.config import RunConfig
from workbench.protocol.actions import Adopt, CopyState, Fold, Merge, StartStep, WriteSnapshot
from workbench.simulate.arithmetic import CaptureNumbers, MergeNumbers, StepNumbers
from workbench.simulate.shelves import OnDisk, Shelf
from workbench.training.flat import initial_weights
from workbench.training.held_state import StateArrays, from_bytes, state_digest
from workbench.training.learner_arithmetic import LearnerArithmetic
from workbench.training.program import TrainingProgram
from workbench.training.snapshot_files import SYNCER, SnapshotDamaged, learner_part
from workbench.training.snapshot_parts import SyncerPart, learner_arrays, learner_state, syncer_part


class Outgoing(NamedTuple):
    """A contribution under way."""

    fragment: int
    base_version: int
    codec: str
    payload: Any
    digest: int


class Incomplete(NamedTuple):
    """A snapshot that is being taken: the syncer's part, and the learners' so far."""

    syncer: SyncerPart
    learners: dict[int, np.ndarray]


class Numbers:
    """Real training in virtual time: one executor per learner and one for the syncer, in one process.

    Parameters
    ----------
    config : RunConfig
    program : TrainingProgram
        Compiled functions and text, shared.
    snapshots : Path or Shelf, optional
        Where snapshots lie: a folder, or a shelf; without it none is written.
    slots : Path, optional
        File of the committed fragments; in memory by default.
    """

    def __init__(
        self,
        config: RunConfig,
        program: TrainingProgram,
        snapshots: Path | Shelf | None = None,
        slots: Path | None = None,
    ) -> None:
        self.config = config
        self.program = program
        self.fragmentation = program.fragmentation
        self.initial = initial_weights(config)
        count, sizes = slots_needed(config.anchor, config.anchors_kept), self.fragmentation.sizes
        mapped = mapped_slots(slots, sizes, count, OUTER_VECTORS) if slots is not None else None
        self.syncer = SyncerArithmetic(self.fragmentation, self.initial, mapped, slot_count=count)
        self.learners: dict[int, LearnerArithmetic] = {}
        self.payloads: dict[int, Outgoing | orders.Arrived | np.ndarray] = {}
        self.snapshots: Shelf | None = (
            OnDisk(snapshots, config.snapshots_kept) if isinstance(snapshots, Path) else snapshots
        )
        self.incomplete: dict[int, Incomplete] = {}
        self.current: list[np.ndarray] = [flat.copy() for flat in self.initial]
        self.next_handle = 0

    def _keep(self, payload: Outgoing | np.ndarray) -> int:
        self.next_handle += 1
        self.payloads[self.next_handle] = payload
        return self.next_handle

    def adopt(self, learner: int, source: str) -> int:
        """See `Arithmetic.adopt`."""
        made = LearnerArithmetic(self.config, learner, self.program, self.fragmentation)
        made.load(self.initial)
        self.learners[learner] = made
        return made.digest()

    def drop(self, learner: int) -> None:
        """See `Arithmetic.drop`."""
        self.learners.pop(learner, None)

    def step(self, learner: int, order: StartStep) -> StepNumbers:
        """See `Arithmetic.step`."""
        done = self.learners[learner].step(
            order.step, order.global_step, order.rate_scale, order.batch, order.accumulation
        )
        return StepNumbers(done.loss, done.tokens, done.batch, done.accumulation)

    def publish(self, learner: int, fragment: int) -> None:
        """See `Arithmetic.publish`; a fold renews the host copy of its fragment itself."""
        if fragment < 0:
            self.learners[learner].publish()

    def capture(self, learner: int, fragment: int, step: int, codec: str, poison: Poison | None) -> CaptureNumbers:
        """See `Arithmetic.capture`."""
        executor = self.learners[learner]
        made = executor.capture(fragment, step, codec, poison)
        handle = self._keep(Outgoing(fragment, executor.base_versions[fragment], codec, made.payload, made.digest))
        return CaptureNumbers(made.digest, made.nbytes, handle)

    def poison(self, learner: int, fragment: int, poison: Poison) -> None:
        """See `Arithmetic.poison`."""
        self.learners[learner].poison(fragment, poison)

    def fold(self, learner: int, order: Fold) -> None:
        """See `Arithmetic.fold`."""
        theta = self.payloads[order.handle]
        assert isinstance(theta, np.ndarray)
        reference = order.reference if order.reference >= 0 else None
        self.learners[learner].fold(order.fragment, theta, order.version, order.rule, order.alpha, reference)

    def forget(self, learner: int, fragment: int, step: int) -> None:
        """See `Arithmetic.forget`."""
        if learner in self.learners:
            self.learners[learner].forget(fragment, step)

    def update(self, fragment: int, version: int) -> tuple[int, int]:
        """See `Arithmetic.update`; all addressees share one copy, made when the version was committed."""
        theta = self.current[fragment]
        return self._keep(theta), theta.nbytes

    def looks(self, handle: int) -> tuple[bool, bool, float]:
        """See `Arithmetic.looks`: decodes, as the receiver does before its machine sees the header."""
        sent = self.payloads[handle]
        assert isinstance(sent, Outgoing)
        found = orders.look(self.syncer, sent.fragment, sent.payload, sent.codec, sent.base_version, sent.digest)
        if found.arrived is not None:
            self.payloads[handle] = found.arrived
        return found.finite, found.fits, found.norm

    def release(self, handle: int) -> None:
        """See `Arithmetic.release`."""
        self.payloads.pop(handle, None)

    def merge(self, order: Merge) -> MergeNumbers:
        """See `Arithmetic.merge`."""
        used = [self.payloads[handle] for handle in order.handles]
        made = orders.merge(
            self.syncer,
            order.fragment,
            order.version,
            order.learners,
            [item for item in used if isinstance(item, orders.Arrived)],
            order.weights,
            order.base_versions,
            orders.settings_of_order(order.settings, self.config.seed),
            order.fresh_outer,
        )
        return MergeNumbers(*made)

    def commit(self, fragment: int, version: int) -> None:
        """See `Arithmetic.commit`."""
        self.syncer.commit(fragment, version)
        self.current[fragment] = self.syncer.theta(fragment).copy()

    def recover(self, versions: list[int]) -> None:
        """See `Arithmetic.recover`."""
        for p, version in enumerate(versions):
            if not self.syncer.restore(p, version):
                raise RuntimeError(f"no slot holds version {version} of fragment {p}, which the journal names")
            self.current[p] = self.syncer.theta(p).copy()

    def copy_state(self, learner: int, order: CopyState) -> CaptureNumbers:
        """See `Arithmetic.copy_state`."""
        held = self.learners[learner].hold(order.captured if order.snapshot else None)
        data = held.arrays(self.fragmentation).to_bytes()
        return CaptureNumbers(state_digest(data), data.nbytes, self._keep(data))

    def adopt_state(self, learner: int, order: Adopt) -> tuple[int, bool]:
        """See `Arithmetic.adopt_state`."""
        executor = self.learners.get(learner)
        if order.source == "peer":
            data = self.payloads.get(order.handle)
            if not isinstance(data, np.ndarray) or state_digest(data) != order.digest or executor is None:
                return 0, False
            executor.adopt_peer(from_bytes(data), order.fragments)
            return order.digest, True
        state = self._stored(order.snapshot, learner)
        if state is None:
            return 0, False
        if executor is None or order.source == "own":
            executor = LearnerArithmetic(self.config, learner, self.program, self.fragmentation)
        if order.source == "own":
            facts = self.facts(order.snapshot, learner)
            executor.restore(state, facts["n"], facts["base"])
            self.learners[learner] = executor
        else:
            executor.load_moments(state.moments)
        return state_digest(state.to_bytes()), True

    def _stored(self, snapshot: int, learner: int) -> StateArrays | None:
        if self.snapshots is None:
            return None
        try:
            return learner_state(self.snapshots.part(snapshot, learner_part(learner)))
        except SnapshotDamaged:
            return None

    def share(self, handle: int) -> int:
        """See `Arithmetic.share`."""
        payload = self.payloads.get(handle)
        return self._keep(payload) if isinstance(payload, np.ndarray) else handle

    def take_snapshot(self, snapshot: int, versions: list[int]) -> None:
        """See `Arithmetic.take_snapshot`."""
        outers = [self.syncer.outer_state(p) for p in range(len(versions))]
        self.incomplete[snapshot] = Incomplete(SyncerPart(list(self.current), outers), {})

    def keep_part(self, snapshot: int, learner: int, handle: int) -> None:
        """See `Arithmetic.keep_part`."""
        data = self.payloads[handle]
        assert isinstance(data, np.ndarray)
        self.incomplete[snapshot].learners[learner] = data

    def write_snapshot(self, order: WriteSnapshot) -> tuple[int, str]:
        """See `Arithmetic.write_snapshot`."""
        taken = self.incomplete.pop(order.snapshot)
        if self.snapshots is None:
            return 0, "this run keeps no snapshots"
        parts = {SYNCER: taken.syncer.arrays()}
        parts |= {learner_part(m): learner_arrays(from_bytes(data)) for m, data in sorted(taken.learners.items())}
        try:
            self.snapshots.write(order.snapshot, {**order.manifest, "outer": taken.syncer.rules}, parts)
        except OSError as error:
            return 0, f"it could not be written: {error.strerror or error}"
        return taken.syncer.digest, ""

    def drop_snapshot(self, snapshot: int) -> None:
        """See `Arithmetic.drop_snapshot`."""
        self.incomplete.pop(snapshot, None)

    def go_back(self, snapshot: int) -> None:
        """See `Arithmetic.go_back`."""
        assert self.snapshots is not None
        manifest = self.snapshots.manifest(snapshot)
        part = syncer_part(self.snapshots.part(snapshot, SYNCER), manifest["outer"])
        for p, version in enumerate(manifest["versions"]):
            self.syncer.install(p, version, part.thetas[p], part.outers[p])
            self.current[p] = self.syncer.theta(p).copy()

    def facts(self, snapshot: int, learner: int) -> dict[str, Any]:
        """See `Arithmetic.facts`."""
        assert self.snapshots is not None
        facts: dict[str, Any] = self.snapshots.manifest(snapshot)["learners"][str(learner)]["facts"]
        return facts

    def evaluate(self) -> float | None:
        """See `Arithmetic.evaluate`."""
        return self.program.evaluate(self.current)

    def digest(self) -> int:
        """xxh3-64 of the committed weights in the order of the fragments."""
        return digest(np.concatenate(self.current))
