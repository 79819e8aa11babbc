"""The learners of a replay: the run's executors, driven by the programs of the tape."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.algorithms.poisons import AFTER_CODEC
from workbench.config import RunConfig
from workbench.protocol.records import learner_of
from workbench.replay.differences import UNFIT, Findings, Impossible
from workbench.replay.program import (
    ContributionAcknowledged,
    FaultApplied,
    FragmentCaptured,
    Restored,
    SettingApplied,
    SnapshotRecorded,
    StateAdopted,
    StateCopied,
    Step,
    StepEnded,
    UpdateFolded,
)
from workbench.replay.states import Copied
from workbench.replay.syncer import ReplayedSyncer
from workbench.training.learner_arithmetic import LearnerArithmetic
from workbench.training.program import TrainingProgram

PLACE = "learner"


@dataclass
class _Copy:
    """A captured copy that its executor keeps until the fold after its acknowledgement."""

    round: int
    n: int
    base_version: int
    event: int
    decided: bool = False


class ReplayedLearner:
    """One learner through all its lives.

    Parameters
    ----------
    config : RunConfig
    process : int
        Process number.
    program : TrainingProgram
        Shared by all learners.
    initial : list of arrays (size,)
        What the run began with.
    syncer : ReplayedSyncer
        Gives the fragments to fold and takes the contributions.
    findings : Findings
    """

    def __init__(
        self,
        config: RunConfig,
        process: int,
        program: TrainingProgram,
        initial: list[np.ndarray],
        syncer: ReplayedSyncer,
        findings: Findings,
    ) -> None:
        self.config, self.process, self.learner = config, process, learner_of(process)
        self.program, self.initial, self.syncer, self.findings = program, initial, syncer, findings
        self._life: LearnerArithmetic | None = None
        self.n = 0
        self.rate_scale = 1.0
        self.steps = 0
        self.captures = 0
        self._copies: dict[int, list[_Copy]] = defaultdict(list)
        self._epoch = 0

    @property
    def executor(self) -> LearnerArithmetic:
        """Arrays of the present life."""
        assert self._life is not None
        return self._life

    def execute(self, step: Step) -> None:
        """Do one step of the program and compare what it gives.

        Raises
        ------
        Impossible
            When it cannot be done as the tape has it.
        """
        if self._life is None and not isinstance(step, StateAdopted | Restored):
            raise self._impossible(step, "no state was adopted before")
        try:
            _DO[type(step)](self, step)
        except UNFIT as error:
            raise self._impossible(step, error) from error

    def _impossible(self, step: Step, why: object) -> Impossible:
        return self.findings.impossible(step, self.process, PLACE, why)

    def _adopted(self, step: StateAdopted) -> None:
        if step.source in ("peer", "snapshot"):
            self._given(step)
            return
        if step.source != "initial":
            raise self._impossible(step, f"a state from {step.source!r}; expected 'initial', 'peer' or 'snapshot'")
        self._began(step, step.n)
        self._life = LearnerArithmetic(self.config, self.learner, self.program, self.program.fragmentation)
        self._life.load(self.initial)
        self.rate_scale = 1.0
        self._copies.clear()
        self.findings.digests(
            step, self.process, PLACE, "digest of the adopted state", step.digest, self.executor.digest()
        )

    def _began(self, step: Step, n: int) -> None:
        """A process begins: its own steps go on, or, in another epoch, from where that says."""
        epoch = self.syncer.epoch_of(step.event)
        if epoch == self._epoch:
            self.findings.values(step, self.process, "tape", "own step before the first", n, self.n)
        self._epoch, self.n = epoch, n

    def _given(self, step: StateAdopted) -> None:
        """Moments of a peer or a snapshot, and of a peer the fragments that the syncer had not sent."""
        if self._life is None:
            raise self._impossible(step, "no state was adopted before")
        self.findings.values(step, self.process, "tape", "own step of the adoption", step.n, self.n)
        states = self.syncer.states
        peer = step.source == "peer"
        found = states.from_peer(step.peer, step.copied) if peer else states.from_snapshot(self.process, step.number)
        if found is None:
            raise self._impossible(step, f"nothing was copied for this state from a {step.source}")
        self.findings.digests(step, self.process, PLACE, "digest of the adopted state", step.digest, found.digest)
        fragments = [p for p, base in enumerate(self.executor.base_versions) if base < 0] if peer else []
        self.executor.adopt_peer(found.arrays, fragments)

    def _copied(self, step: StateCopied | SnapshotRecorded) -> None:
        """Keep what the learner is here, if somebody takes it."""
        number = step.number if isinstance(step, SnapshotRecorded) else None
        if not self.syncer.states.wants(self.process, step.seq, number):
            return
        waiting = {p: [c for c in copies if c.event < step.event] for p, copies in self._copies.items()}
        captured = sorted({(p, c.n) for p, copies in waiting.items() for c in copies})
        held = self.executor.hold(captured if number is not None else None)
        data = held.arrays(self.program.fragmentation).to_bytes()
        copies = {p: [replace(c) for c in copies] for p, copies in waiting.items()}
        made = Copied(data, self.n, list(self.executor.base_versions), dict(copies))
        self.syncer.states.put(self.process, step.seq, number, made)

    def _restored(self, step: Restored) -> None:
        """Be again what a snapshot has of this learner."""
        found = self.syncer.states.from_snapshot(self.process, step.number)
        if found is None:
            raise self._impossible(step, f"nothing was recorded for snapshot {step.number:g}")
        self._began(step, found.n)
        self._life = LearnerArithmetic(self.config, self.learner, self.program, self.program.fragmentation)
        self._life.restore(found.arrays, found.n, found.base_versions)
        self.rate_scale = 1.0
        self._copies = defaultdict(list, {p: [replace(c) for c in held] for p, held in found.waiting.items()})
        self.findings.digests(step, self.process, PLACE, "digest of the restored state", step.digest, found.digest)

    def _step_ended(self, step: StepEnded) -> None:
        self.findings.values(step, self.process, "tape", "own step n", step.n, self.n + 1)
        self.n = step.n
        done = self.executor.step(step.n, step.g, self.rate_scale, step.batch, step.accumulation)
        self.steps += self.findings.compares(step.event)
        recorded, computed = (step.tokens, step.batch, step.accumulation), done[1:]
        for what, there, here in zip(("tokens", "batch", "accumulation"), recorded, computed, strict=True):
            self.findings.values(step, self.process, PLACE, f"{what} of own step {step.n}", there, here)
        self.findings.numbers(step, self.process, PLACE, f"loss of own step {step.n}", step.loss, done.loss)

    def _folded(self, step: UpdateFolded) -> None:
        p = step.fragment
        self.findings.values(step, self.process, "tape", "own step n of the fold", step.n, self.n)
        base = self.executor.base_versions[p]
        self.findings.values(step, self.process, "tape", "version folded before", step.base_version, base)
        theta = self.syncer.take_theta(step)
        reference = step.reference if step.reference >= 0 else None
        self.executor.fold(p, theta, step.version, step.rule, step.alpha, reference)
        for copy in self._copies[p]:
            if copy.decided:
                self.executor.forget(p, copy.n)
        self._copies[p] = [copy for copy in self._copies[p] if not copy.decided]
        self._check_all_decided(step)

    def _check_all_decided(self, step: UpdateFolded) -> None:
        """After a fold no copy waits whose base is too old for any later merge: copies would pile up."""
        kept = 0 if self.config.anchor == "current" else self.config.anchors_kept
        for copy in self._copies[step.fragment]:
            if copy.event < step.event and copy.base_version + kept < step.version:
                what = f"nothing acknowledges the copy captured after own step {copy.n}, which this fold makes useless"
                self.findings.contradiction(step, self.process, "tape", what)

    def _captured(self, step: FragmentCaptured) -> None:
        p, base = step.fragment, self.executor.base_versions[step.fragment]
        self.findings.values(step, self.process, "tape", "base version of the copy", step.base_version, base)
        self.executor.publish_fragment(p)
        made = self.executor.capture(p, step.n, step.codec, step.poison)
        self.captures += self.findings.compares(step.event)
        self._copies[p].append(_Copy(step.round, step.n, step.base_version, step.event))
        same = self.findings.digests(step, self.process, PLACE, "digest of the payload", step.digest, made.digest)
        if step.poison is None or step.poison.kind not in AFTER_CODEC:  # what its receiver could not read was not used
            self.syncer.captured(self.learner, step, made.payload, same)

    def _acknowledged(self, step: ContributionAcknowledged) -> None:
        waiting = [copy for copy in self._copies[step.fragment] if not copy.decided]
        found = next((copy for copy in waiting if (copy.round, copy.n) == (step.round, step.n)), None)
        if found is None:
            what = f"acknowledges a copy for round {step.round} after own step {step.n}, but none waits"
            self.findings.contradiction(step, self.process, "tape", what)
            return
        found.decided = True
        taken = self.syncer.took(self.learner, step, found.base_version)
        self.findings.values(step, self.process, "tape", "whether it was taken", step.taken, float(taken))

    def _fault(self, step: FaultApplied) -> None:
        """A numeric fault on the learner's own fragment."""
        self.executor.poison(step.fragment, step.poison)

    def _setting(self, step: SettingApplied) -> None:
        self.rate_scale = step.rate_scale


_DO: dict[type, Any] = {
    StateAdopted: ReplayedLearner._adopted,
    StepEnded: ReplayedLearner._step_ended,
    UpdateFolded: ReplayedLearner._folded,
    FragmentCaptured: ReplayedLearner._captured,
    ContributionAcknowledged: ReplayedLearner._acknowledged,
    SettingApplied: ReplayedLearner._setting,
    FaultApplied: ReplayedLearner._fault,
    StateCopied: ReplayedLearner._copied,
    SnapshotRecorded: ReplayedLearner._copied,
    Restored: ReplayedLearner._restored,
}
