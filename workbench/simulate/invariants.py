"""The protocol's invariants (PROTOCOL section 15), checked while a virtual run goes on.

`Watch` looks at every input, action and record.  It keeps its own idea of the truth (which records are
journalled, which rounds are open, which steps a learner's parameters hold) and trusts no counter of a machine.
"""

from __future__ import annotations

from typing import Any

from workbench.algorithms.weights import WEIGHTS
from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol.messages import Fragment, Metadata, Pull, Update
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, Record, label_of, learner_of, process_of
from workbench.protocol.settings import MergeSettings
from workbench.protocol.syncer_state import RoundState
from workbench.simulate.arithmetic import Ledgered, Work
from workbench.simulate.liveness import Liveness
from workbench.simulate.world import World
from workbench.tape.ledger import Ledger


class InvariantBroken(AssertionError):
    """An invariant does not hold; the message names it and the values."""


class Watch:
    """Observer that raises `InvariantBroken` at the event that breaks an invariant.

    Parameters
    ----------
    fragments, learners : int
        P and M.
    bound : bool
        Check the bound B on gaps between merges (schedules without lost messages).
    """

    def __init__(self, learners: int, fragments: int, bound: bool = False) -> None:
        self.fragments = fragments
        self.seqs: dict[int, int] = {}
        self.steps: dict[int, int] = {}
        self.incarnations: dict[int, int] = {}
        self.versions = [0] * fragments
        self.committed = [0] * fragments
        self.open: dict[int, int] = {}
        self.merging: set[int] = set()
        self.opened_at: dict[int, MergeSettings] = {}
        self.pulls: set[tuple[int, int, int]] = set()
        self.ever_pulled: dict[int, set[int]] = {}
        self.arrived: set[tuple[int, int]] = set()
        self.merged_steps: dict[tuple[int, int], set[int]] = {}
        self.bases: dict[int, tuple[int, list[int]]] = {}
        self.own_steps: dict[tuple[int, int], int] = {}
        self.healed: dict[int, tuple[int, int]] = {}
        self.last_t = 0
        self.ledger = Ledger(learners, fragments, [1] * fragments)
        self.liveness = Liveness(bound)

    # the three hooks

    def on_input(self, world: World, process: int, event: Any) -> None:
        """Remember what a learner is asked for."""

    def on_action(self, world: World, process: int, action: act.Action) -> None:
        """Check an action before it is done."""
        kind = type(action)
        if kind is act.Append:
            for record in action.records:  # type: ignore[union-attr]
                self._journalled(world, record)
        elif kind is act.Send:
            if process == SYNCER:
                self._syncer_sends(world, action.message)  # type: ignore[union-attr]
            else:
                self._learner_sends(world, process, action.message)  # type: ignore[union-attr]
        elif kind is act.Merge:
            self._merges(world, action)  # type: ignore[arg-type]
        elif kind is act.Commit:
            if self.versions[action.fragment] != action.version:  # type: ignore[union-attr]
                self._broken("6: commit without its record in the journal", action)
        elif kind is act.Capture:
            self._captures(world, process, action)  # type: ignore[arg-type]
        elif kind is act.StartStep:
            self._starts(world, process, action)  # type: ignore[arg-type]

    def after_event(self, world: World) -> None:
        """Check states."""
        syncer = world.syncer
        if syncer.alive and syncer.started:
            state = syncer.machine.state
            fragments = [r.p for r in state.rounds.values()]
            if len(fragments) > state.fixed.in_flight_max or len(set(fragments)) != len(fragments):
                self._broken("4: rounds in flight", [(r.t, r.p) for r in state.rounds.values()])
            unmerged = {t for t, r in state.rounds.items() if r.state != RoundState.COMMITTING}
            if unmerged != set(self.open):
                self._broken("rounds of the machine and of the journal differ", (sorted(unmerged), sorted(self.open)))
            for member in state.members.values():
                if len(member.pending) > self.fragments:
                    self._broken("10: updates that wait", member.pending)
        for learner, process in world.learners.items():
            if process.alive and process.started:
                self._bases_rise(learner, process.number, process.machine.state)
        self.liveness.look(world)

    @staticmethod
    def _broken(what: str, values: Any) -> None:
        raise InvariantBroken(f"{what}: {values}")

    # the journal

    def _journalled(self, world: World, record: Record) -> None:
        process = record.process
        if record.seq != self.seqs.get(process, 0) + 1:
            self._broken("6: journal skips or repeats", (label_of(process), self.seqs.get(process, 0), record.seq))
        self.seqs[process] = record.seq
        check = _RECORD_CHECKS.get(record.kind)
        if check is not None:
            check(self, world, record)
        self.ledger.apply(record)
        self.ledger.check_last()

    def _step_ended(self, world: World, record: Record) -> None:
        learner = learner_of(record.process)
        if record.step != self.steps.get(learner, 0) + 1:
            self._broken("8: own steps are not consecutive", (learner, self.steps.get(learner, 0), record.step))
        self.steps[learner] = record.step

    def _joined(self, world: World, record: Record) -> None:
        learner = learner_of(record.peer)
        if record.version != self.incarnations.get(learner, 0) + 1:
            self._broken("incarnation is not the next", (learner, self.incarnations.get(learner, 0), record.version))
        self.incarnations[learner] = record.version

    def _lost(self, world: World, record: Record) -> None:
        """A learner whose message lies at the syncer's door is not silent."""
        if record.reason != "heartbeat":
            return
        member = world.syncer.machine.state.members[learner_of(record.peer)]
        for waiting in world.syncer.queue:
            if isinstance(waiting, ev.Received) and waiting.connection == member.connection:
                self._broken("10 (section): lost by heartbeat while its message waits", label_of(record.peer))

    def _opened(self, world: World, record: Record) -> None:
        fixed = world.fixed
        if record.round <= self.last_t or fixed.offsets[record.fragment] != record.round % fixed.period:
            self._broken("rounds open in order of t, each with its fragment", (self.last_t, record.round, record.fragment))
        self.last_t = record.round
        self.open[record.round] = record.fragment
        self.opened_at[record.round] = world.syncer.machine.state.book.merge

    def _closed(self, world: World, record: Record) -> None:
        if record.reason == "backlog":
            if (int(record.value) - record.round) % world.fixed.period:
                self._broken("backlog is skipped by whole periods", (record.round, record.value))
            return
        self._forget_round(record.round)

    def _forget_round(self, t: int) -> None:
        self.open.pop(t, None)
        self.merging.discard(t)
        self.opened_at.pop(t, None)

    def _restarted(self, world: World, record: Record) -> None:
        self.merging.discard(record.round)
        self.arrived = {key for key in self.arrived if key[0] != record.round}

    def _quorum(self, world: World, record: Record) -> None:
        """Recount, from the truth, who may be counted: healed, far enough, or its fragment here."""
        state = world.syncer.machine.state
        count = 0
        for learner, member in state.members.items():
            number, healed_since = self.healed.get(learner, (-1, 0))
            process = world.learners[learner]
            healed = number == member.process_number and healed_since > 0
            far = process.number != member.process_number or process.machine.state.g >= record.round
            here = (record.round, learner) in self.arrived
            count += bool(here or (healed and far and member.connected))
        if count < state.book.policy.quorum:
            self._broken("quorum without K ready learners", (record.round, count, state.book.policy.quorum))

    def _pull_sent(self, world: World, record: Record) -> None:
        learner = learner_of(record.peer)
        key = (record.round, learner, self.incarnations[learner])
        if key in self.pulls or (record.round, learner) in self.arrived:
            self._broken("a second PULL of one round", key)
        self.pulls.add(key)
        self.ever_pulled.setdefault(record.round, set()).add(learner)

    def _answered(self, world: World, record: Record) -> None:
        """A refused or dropped answer: the learner may be asked again."""
        if record.reason != "nonfinite":
            learner = learner_of(record.peer)
            self.pulls.discard((record.round, learner, self.incarnations[learner]))

    def _arrived(self, world: World, record: Record) -> None:
        learner = learner_of(record.peer)
        if record.round not in self.open or record.round in self.merging:
            self._broken("a fragment of a closed or merging round is used", (record.round, learner))
        if record.detail["incarnation"] != self.incarnations[learner]:
            self._broken("a fragment of another incarnation is used", (record.round, learner, record.detail))
        if (record.round, learner) in self.arrived:
            self._broken("2: two fragments of one learner in a round", (record.round, learner))
        self.arrived.add((record.round, learner))

    def _merged(self, world: World, record: Record) -> None:
        p = record.fragment
        if record.version != self.versions[p] + 1:
            self._broken("1: version does not rise by one", (p, self.versions[p], record.version))
        self.versions[p] = record.version
        self._forget_round(record.round)
        self.liveness.merged(world, record)

    def _is_committed(self, world: World, record: Record) -> None:
        if record.version != self.versions[record.fragment]:
            self._broken("5: commit of what is not merged", (record.fragment, record.version))
        self.committed[record.fragment] = record.version

    # the syncer

    def _syncer_sends(self, world: World, message: Any) -> None:
        for process, seq in enumerate(message.clock):
            if seq > self.seqs.get(process, 0):
                self._broken("6: an effect before its record", (type(message).__name__, label_of(process), seq))
        if type(message) is Update and message.version > self.committed[message.fragment]:
            self._broken("5: UPDATE before its commit", (message.fragment, message.version))

    def _merges(self, world: World, order: act.Merge) -> None:
        state = world.syncer.machine.state
        round_ = state.rounds[order.round]
        if order.learners != sorted(set(order.learners)):
            self._broken("2: a learner twice in a merge", order.learners)
        if len(round_.here) + len(round_.guarded) < state.book.policy.quorum:
            self._broken("a merge of fewer than K", order.learners)
        expected = self.opened_at[order.round]
        if any(order.settings[key] != getattr(expected, key) for key in ("merge", "outer", "outer_rate", "outer_momentum")):
            self._broken("14: arithmetic of another revision than at OPEN", order.settings)
        self.merging.add(order.round)
        for learner, handle, weight in zip(order.learners, order.handles, order.weights, strict=True):
            self._contribution(world, order, learner, handle, weight)

    def _contribution(self, world: World, order: act.Merge, learner: int, handle: int, weight: float) -> None:
        arithmetic = world.arithmetic
        assert isinstance(arithmetic, Ledgered)
        work = arithmetic.payloads[handle]
        assert isinstance(work, Work)
        counted = world.syncer.machine.state.rounds[order.round].here[learner]
        if work.learner != learner or work.fragment != order.fragment:
            self._broken("2: another learner's work", work)
        if learner not in self.ever_pulled.get(order.round, ()):
            self._broken("3: merged without having been admitted", (order.round, learner))
        if not work.finite or not work.steps or counted.steps != len(work.steps) or counted.step != work.steps[-1]:
            self._broken("3: what is merged is not what was counted", (work, counted.steps, counted.step))
        behind = self.versions[order.fragment] - work.base_version
        allowed = 0 if world.fixed.anchor == "current" else world.fixed.anchors_kept
        if not 0 <= behind <= allowed or order.version != self.versions[order.fragment] + 1:
            self._broken("3: rests on another version", (work.base_version, self.versions[order.fragment]))
        if self.steps.get(learner, 0) < work.steps[-1]:
            self._broken("6: the sender's records are not complete", (learner, work.steps[-1]))
        rule = WEIGHTS[self.opened_at[order.round].weights]
        if weight != rule(counted.steps, counted.tokens, behind):
            self._broken("weight is not that of the rule", (learner, weight))
        seen = self.merged_steps.setdefault((learner, order.fragment), set())
        if not seen.isdisjoint(work.steps):
            self._broken("2: a step is merged twice", (learner, order.fragment, sorted(seen & set(work.steps))))
        world.at(world.now + 1, self._note_merged, (world, order, learner, work.steps))

    def _note_merged(self, world: World, order: act.Merge, learner: int, steps: tuple[int, ...]) -> None:
        """Steps count as merged when their merge is in the journal."""
        if self.versions[order.fragment] >= order.version:
            self.merged_steps[learner, order.fragment].update(steps)
        elif order.round in self.open and order.round in self.merging and world.syncer.alive:
            world.at(world.now + 1_000_000, self._note_merged, (world, order, learner, steps))

    # learners

    def _learner_sends(self, world: World, process: int, message: Any) -> None:
        learner = learner_of(process)
        work = world.arithmetic.work.get(learner)  # type: ignore[attr-defined]
        if type(message) is Metadata and work is not None:
            for p, steps in enumerate(work):
                if message.c_steps[p] != len(steps):
                    self._broken("counters differ from the work since the last fold", (learner, p, message.c_steps[p], steps))
        elif type(message) is Fragment:
            payload = world.arithmetic.payloads[message.handle]  # type: ignore[attr-defined]
            if message.steps != len(payload.steps) or message.base_version != payload.base_version:
                self._broken("counters captured with another copy", (learner, message.steps, payload))

    def _captures(self, world: World, process: int, order: act.Capture) -> None:
        state = world.learners[learner_of(process)].machine.state
        p = order.fragment
        if p in state.inbox:
            self._broken("3: captured while an UPDATE lies unfolded", (learner_of(process), p))
        if not world.arithmetic.host[learner_of(process)][p]:  # type: ignore[attr-defined]
            self._broken("3: captured without a step", (learner_of(process), p))

    def _starts(self, world: World, process: int, order: act.StartStep) -> None:
        learner = learner_of(process)
        key = (learner, world.learners[learner].number)
        if order.step != self.own_steps.get(key, order.step - 1) + 1:
            self._broken("8: own step repeated or left out", (key, self.own_steps.get(key), order.step))
        self.own_steps[key] = order.step

    def _bases_rise(self, learner: int, number: int, state: Any) -> None:
        known = self.bases.get(learner)
        if known is not None and known[0] == number:
            if known[1] is state.base or known[1] == state.base:
                pass
            elif any(new < old for new, old in zip(state.base, known[1], strict=True)):
                self._broken("9: base falls", (learner, known[1], state.base))
        if any(base > version for base, version in zip(state.base, self.committed, strict=True)):
            self._broken("9: base above version", (learner, state.base, self.committed))
        if known is None or known[0] != number or known[1] != state.base:
            self.bases[learner] = (number, list(state.base))
        if len(state.inbox) > self.fragments:
            self._broken("10: inbox", (learner, len(state.inbox)))
        if state.has_state and self.healed.get(learner, (-1, 0))[0] != number:
            self.healed[learner] = (number, 0)
        if self.healed.get(learner) == (number, 0) and min(state.base) >= 0:
            self.healed[learner] = (number, state.n + 1)


_RECORD_CHECKS: dict[int, Any] = {
    Kind.STEP_ENDED: Watch._step_ended,
    Kind.LEARNER_JOINED: Watch._joined,
    Kind.LEARNER_LOST: Watch._lost,
    Kind.ROUND_OPENED: Watch._opened,
    Kind.ROUND_SKIPPED: Watch._closed,
    Kind.ROUND_ABORTED: Watch._closed,
    Kind.ROUND_RESTARTED: Watch._restarted,
    Kind.QUORUM_REACHED: Watch._quorum,
    Kind.PULL_SENT: Watch._pull_sent,
    Kind.FRAGMENT_ARRIVED: Watch._arrived,
    Kind.FRAGMENT_DROPPED: Watch._answered,
    Kind.REFUSAL_ARRIVED: Watch._answered,
    Kind.MERGED: Watch._merged,
    Kind.MERGE_COMMITTED: Watch._is_committed,
}
