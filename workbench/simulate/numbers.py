"""Arithmetic with numbers for the virtual-time driver: the same executors that real processes use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.algorithms import orders
from workbench.algorithms.digest import digest
from workbench.algorithms.fragment_slots import slots_needed
from workbench.algorithms.poisons import Poison
from workbench.algorithms.syncer_arithmetic import SyncerArithmetic
from workbench.config import RunConfig
from workbench.protocol.actions import Fold, Merge, StartStep
from workbench.simulate.arithmetic import CaptureNumbers, MergeNumbers, StepNumbers
from workbench.training.flat import initial_weights
from workbench.training.learner_arithmetic import LearnerArithmetic
from workbench.training.program import TrainingProgram


class Outgoing(NamedTuple):
    """A contribution under way."""

    fragment: int
    base_version: int
    codec: str
    payload: Any
    digest: int


class Numbers:
    """Real training in virtual time: one executor per learner and one for the syncer, in one process.

    Parameters
    ----------
    config : RunConfig
    program : TrainingProgram
        Compiled functions and text, shared.
    """

    def __init__(self, config: RunConfig, program: TrainingProgram) -> None:
        self.config = config
        self.program = program
        self.fragmentation = program.fragmentation
        self.initial = initial_weights(config)
        self.syncer = SyncerArithmetic(
            self.fragmentation, self.initial, slot_count=slots_needed(config.anchor, config.anchors_kept)
        )
        self.learners: dict[int, LearnerArithmetic] = {}
        self.payloads: dict[int, Outgoing | orders.Arrived | np.ndarray] = {}
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

    def evaluate(self) -> float | None:
        """See `Arithmetic.evaluate`."""
        return self.program.evaluate(self.current)

    def digest(self) -> int:
        """xxh3-64 of the committed weights in the order of the fragments."""
        return digest(np.concatenate(self.current))
