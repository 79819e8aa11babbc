"""The learners of a counterfactual: their programs executed again with other settings, their records renewed."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from workbench.protocol.actions import Adopt, StartStep
from workbench.protocol.folding import counters_after, rule_of
from workbench.protocol.records import SYNCER, Kind, Record, learner_of
from workbench.protocol.settings import LearnerSettings
from workbench.replay.counterfactual.handed_on import HandedOn
from workbench.replay.counterfactual.renumbering import Changed, Renumbered
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
from workbench.simulate.numbers import Numbers

Theta = Callable[[int, int], np.ndarray]
"""(fragment, version) to the syncer's parameters (size,)."""


@dataclass
class _Copy:
    """A captured copy: at which event, after which own step, with how many tokens in all, and if its fate is known."""

    event: int
    round: int
    n: int
    total: int
    decided: bool = False


class RetoldLearner:
    """One learner through all its lives: the order of its program is the tape's, the values are computed anew.

    Parameters
    ----------
    process : int
    steps : sequence of Step or Changed
        Its program, captures next to the publication of their host copies.
    records : list of Record
        Of the whole tape.
    numbers : Numbers
        Holds the executors of the run.
    theta : function
        Gives the versions to fold.
    settings : dict of int to LearnerSettings
        By revision, as the syncer's book has them now.
    handed_on : HandedOn
        What learners copy for each other, and for snapshots.
    renumbered : Renumbered
        Says which revision a record names now.

    Attributes
    ----------
    executed : int
        Event of the last record that was renewed.
    handles : dict of int to int
        Payloads by the seq of the record of their capture.
    changed : LearnerSettings
        Those with the change that is put in.
    """

    def __init__(
        self,
        process: int,
        steps: Sequence[Step | Changed],
        records: list[Record],
        numbers: Numbers,
        theta: Theta,
        settings: dict[int, LearnerSettings],
        handed_on: HandedOn,
        renumbered: Renumbered,
    ) -> None:
        self.process, self.learner = process, learner_of(process)
        self._steps, self._records, self._numbers, self._theta, self._by_revision = (
            steps, records, numbers, theta, settings,
        )  # fmt: skip
        self._handed_on, self._renumbered = handed_on, renumbered
        self._at = 0
        self._place = {step.event: place for place, step in enumerate(steps)}
        self._values: dict[int, dict[str, Any]] = {}
        self.executed = -1
        self.handles: dict[int, int] = {}
        fragments = numbers.config.fragments
        self.settings, self.changed = settings[0], settings[0]
        self._c_steps, self._c_tokens, self._total, self._n = [0] * fragments, [0] * fragments, 0, 0
        self._copies: dict[int, list[_Copy]] = defaultdict(list)
        self._counted: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []

    def renew(self, event: int) -> Record:
        """Execute the program up to a record; the record as it is now."""
        record = self._records[event]
        while self._at <= self._place.get(event, -1):
            step = self._steps[self._at]
            self._at += 1
            self._values[step.event] = _DO[type(step)](self, step) or {}
        self.executed = event
        values = self._values.pop(event, {})
        if record.kind == Kind.STATE_LEFT:
            values["digest"] = self._handed_on.digest(self.process, record.version, record.digest)
        if "detail" in values:
            values["detail"] = {**record.detail, **values["detail"]}
        return msgspec.structs.replace(record, **values) if values else record

    def counters_at(self, seq: int) -> tuple[list[int], list[int]] | None:
        """Steps and tokens by fragment after the learner's record ``seq``, None where that is not kept."""
        at = bisect_right(self._counted, seq, key=lambda entry: entry[0]) - 1
        if at < 0:
            return None
        return list(self._counted[at][1]), list(self._counted[at][2])

    def _count(self, event: int) -> None:
        self._counted.append((self._records[event].seq, tuple(self._c_steps), tuple(self._c_tokens)))
        del self._counted[:-512]

    def _adopted(self, step: StateAdopted) -> dict[str, Any]:
        if step.source != "initial":
            return self._given(step)
        fragments = self._numbers.config.fragments
        self.settings = self._by_revision[0]
        self._copies.clear()
        self._c_steps, self._c_tokens, self._total = [0] * fragments, [0] * fragments, 0
        self._counted.clear()
        self._count(step.event)
        return {"digest": self._numbers.adopt(self.learner, step.source)}

    def _restored(self, step: Restored) -> dict[str, Any]:
        """Be again what a snapshot has of this learner: arrays, counters, and the copies that wait for their fate."""
        number = int(step.number)
        digest, whole = self._numbers.adopt_state(self.learner, Adopt("own", snapshot=number))
        assert whole, "the snapshot that the run went back to is on the shelf"
        facts = self._numbers.facts(number, self.learner)
        self.settings = self._by_revision[0]
        self._c_steps, self._c_tokens = list(facts["c_steps"]), list(facts["c_tokens"])
        self._total, self._n = facts["total_tokens"], facts["n"]
        self._copies = defaultdict(list)
        for p, copies in facts["captures"].items():
            held = (_Copy(-1, c["round"], c["step"], c["total_tokens"], c["decided"]) for c in copies)
            self._copies[int(p)] = list(held)
        self._counted.clear()
        self._count(step.event)
        return {"digest": digest}

    def _given(self, step: StateAdopted) -> dict[str, Any]:
        """Moments of a peer or a snapshot, and of a peer the fragments that the syncer had not sent."""
        executor = self._numbers.learners[self.learner]
        found = self._handed_on.taken(self.process, step.source, step.peer, step.copied, step.number)
        unsent = [p for p, base in enumerate(executor.base_versions) if base < 0] if step.source == "peer" else []
        executor.adopt_peer(found.arrays, unsent)
        tokens = sum(self._c_tokens[p] for p in unsent)
        for p in unsent:
            self._c_steps[p] = self._c_tokens[p] = 0
        self._count(step.event)
        return {"digest": found.digest, "tokens": tokens}

    def _copied(self, step: StateCopied | SnapshotRecorded) -> None:
        """Keep what the learner is here; a snapshot holds the copies that wait for their fate, too."""
        number = step.number if isinstance(step, SnapshotRecorded) else None
        held = ((p, c.n) for p, copies in self._copies.items() for c in copies if c.event < step.event)
        executor = self._numbers.learners[self.learner]
        state = executor.hold(sorted(set(held)) if number is not None else None).arrays(self._numbers.fragmentation)
        counters = (self._c_steps, self._c_tokens)
        peer = self._records[step.event].peer if number is None else SYNCER
        self._handed_on.put(self.process, step.seq, peer, number, state.to_bytes(), self._n, counters)

    def _stepped(self, step: StepEnded) -> dict[str, Any]:
        scale = self.settings.rate_scale
        done = self._numbers.step(self.learner, StartStep(step.n, step.g, step.batch, step.accumulation, scale))
        self._n = step.n
        self._total += done.tokens
        self._c_steps = [c + 1 for c in self._c_steps]
        self._c_tokens = [c + done.tokens for c in self._c_tokens]
        self._count(step.event)
        return {"value": done.loss}

    def _folded(self, step: UpdateFolded) -> dict[str, Any]:
        p, executor = step.fragment, self._numbers.learners[self.learner]
        anew = int(self._records[step.event].detail.get("anew", 0))
        rule, alpha = rule_of(self.settings, step.base_version, anew)
        before = self._c_steps[p], self._c_tokens[p]
        reference = step.reference if step.reference >= 0 else None
        executor.fold(p, self._theta(p, step.version), step.version, rule, alpha, reference)
        copy = next((c for c in self._copies[p] if c.n == step.reference), None)
        since = (self._n - copy.n, self._total - copy.total) if copy is not None else None
        self._c_steps[p], self._c_tokens[p] = counters_after(rule, *before, since)
        self._forget_decided(p)
        self._count(step.event)
        return {"reason": rule, "value": alpha, "steps": before[0], "tokens": before[1]}

    def _forget_decided(self, p: int) -> None:
        kept = [c for c in self._copies[p] if not c.decided]
        for copy in self._copies[p]:
            if copy.decided and all(copy.n != other.n for other in kept):
                self._numbers.forget(self.learner, p, copy.n)
        self._copies[p] = kept

    def _captured(self, step: FragmentCaptured) -> dict[str, Any]:
        p, executor = step.fragment, self._numbers.learners[self.learner]
        executor.publish_fragment(p)
        made = self._numbers.capture(self.learner, p, step.n, step.codec, step.poison)
        self.handles[self._records[step.event].seq] = made.handle
        self._copies[p].append(_Copy(step.event, step.round, step.n, self._total))
        counted = {"steps": self._c_steps[p], "tokens": self._c_tokens[p]}
        return {"digest": made.digest, "detail": {"bytes": made.nbytes}, **counted}

    def _acknowledged(self, step: ContributionAcknowledged) -> None:
        for copy in self._copies[step.fragment]:
            if not copy.decided and (copy.round, copy.n) == (step.round, step.n):
                copy.decided = True
                return

    def _setting(self, step: SettingApplied) -> dict[str, Any]:
        revision = self._renumbered.setting(self._records[step.event])
        self.settings = self._by_revision.get(revision, self.settings)
        return {"detail": {"values": msgspec.structs.asdict(self.settings)}}

    def _changed(self, step: Changed) -> None:
        self.settings = self.changed

    def _fault(self, step: FaultApplied) -> None:
        self._numbers.poison(self.learner, step.fragment, step.poison)


_DO: dict[type, Any] = {
    StateAdopted: RetoldLearner._adopted,
    Restored: RetoldLearner._restored,
    Changed: RetoldLearner._changed,
    StepEnded: RetoldLearner._stepped,
    UpdateFolded: RetoldLearner._folded,
    FragmentCaptured: RetoldLearner._captured,
    ContributionAcknowledged: RetoldLearner._acknowledged,
    SettingApplied: RetoldLearner._setting,
    FaultApplied: RetoldLearner._fault,
    StateCopied: RetoldLearner._copied,
    SnapshotRecorded: RetoldLearner._copied,
}
