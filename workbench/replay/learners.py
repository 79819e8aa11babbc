"""The learners of a replay: the run's executors, driven by the programs of the tape."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
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
    SettingApplied,
    StateAdopted,
    Step,
    StepEnded,
    UpdateFolded,
)
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
        if self._life is None and not isinstance(step, StateAdopted):
            raise self._impossible(step, "no state was adopted before")
        try:
            _DO[type(step)](self, step)
        except UNFIT as error:
            raise self._impossible(step, error) from error

    def _impossible(self, step: Step, why: object) -> Impossible:
        return self.findings.impossible(step, self.process, PLACE, why)

    def _adopted(self, step: StateAdopted) -> None:
        if step.source != "initial":
            raise self._impossible(step, f"a state from {step.source!r}; expected 'initial'")
        self._life = LearnerArithmetic(self.config, self.learner, self.program, self.program.fragmentation)
        self._life.load(self.initial)
        self.rate_scale = 1.0
        self._copies.clear()
        self.findings.digests(
            step, self.process, PLACE, "digest of the adopted state", step.digest, self.executor.digest()
        )

    def _step_ended(self, step: StepEnded) -> None:
        self.findings.values(step, self.process, "tape", "own step n", step.n, self.n + 1)
        self.n = step.n
        done = self.executor.step(step.n, step.g, self.rate_scale, step.batch, step.accumulation)
        self.steps += 1
        recorded, computed = (step.tokens, step.batch, step.accumulation), done[1:]
        for what, there, here in zip(("tokens", "batch", "accumulation"), recorded, computed, strict=True):
            self.findings.values(step, self.process, PLACE, f"{what} of own step {step.n}", there, here)
        self.findings.numbers(step, self.process, PLACE, f"loss of own step {step.n}", step.loss, done.loss)

    def _folded(self, step: UpdateFolded) -> None:
        p = step.fragment
        self.findings.values(step, self.process, "tape", "own step n of the fold", step.n, self.n)
        base = self.executor.base_versions[p]
        self.findings.values(step, self.process, "tape", "version folded before", step.base_version, base)
        theta = self.syncer.take_theta(p, step.version)
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
        self.captures += 1
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
        taken = self.syncer.took(self.learner, step.fragment, step.n, step.version, found.base_version)
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
}
