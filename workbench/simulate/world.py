"""The virtual-time driver: the machines of all processes, an event heap, and a modelled network.

It owns no protocol logic: it tells machines what happened and does what they return, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

import msgspec

from workbench.algorithms.seeds import sub_seed
from workbench.config import RunConfig
from workbench.protocol import actions as act
from workbench.protocol import copies, quorum, restart, syncer
from workbench.protocol import events as ev
from workbench.protocol.faults import NO_FAULTS, Fault, FaultPlan
from workbench.protocol.foreign import ForeignProcess
from workbench.protocol.plans import Rest
from workbench.protocol.records import EVALUATOR, SUPERVISOR, SYNCER, Kind, Record, learner_of, process_of
from workbench.protocol.round_state import RoundState
from workbench.protocol.settings import (
    FixedSettings,
    fixed_settings_of,
    learner_settings_of,
    settings_book_of,
)
from workbench.protocol.syncer_state import SyncerState
from workbench.simulate.arithmetic import Arithmetic
from workbench.simulate.doing import do_for_learner, do_for_syncer, step_ended
from workbench.simulate.durations import Durations, StepTimes
from workbench.simulate.mailing import release_what_died
from workbench.simulate.network import Network
from workbench.simulate.processes import LearnerProcess, SyncerProcess, VirtualProcess
from workbench.simulate.striking import Striker
from workbench.tape.going_on import merged_tokens

REPORT_NS = 1_000_000
REMOVE_LIMIT_NS = 2_000_000_000
"""For so long a removed learner may take to leave by itself."""


class Observer(Protocol):
    """Looks at everything; changes nothing."""

    def on_input(self, world: World, process: int, event: Any) -> None:
        """Before a machine takes an input."""

    def on_action(self, world: World, process: int, action: act.Action) -> None:
        """Before an action is done."""

    def after_event(self, world: World) -> None:
        """After everything that an event caused."""


class World:
    """One virtual run.

    Parameters
    ----------
    config : RunConfig
        The run.
    offsets : tuple of int
        Due offset of each fragment.
    arithmetic : Arithmetic
        With or without numbers.
    plan : FaultPlan
        Faults to inject.
    journal : callable, optional
        Takes (inputs, records) that belong together; the syncer's inputs come encoded as
        (process, incarnation, time_ns, bytes).
    observer : Observer, optional
        Looks on.
    sizes : sequence of int, optional
        Elements of each fragment, the weights of the tokens that an evaluation reports; equal by default.
    identity : dict, optional
        Host, pid and fingerprint that every process start is recorded with.
    durations : Durations, optional
        How long everything takes; by default what ``config.virtual`` says.
    history : sequence of Record
        The journal of a run that is resumed: nothing starts before `resume_run`.
    """

    def __init__(
        self,
        config: RunConfig,
        offsets: tuple[int, ...],
        arithmetic: Arithmetic,
        plan: FaultPlan = NO_FAULTS,
        journal: Callable[[list[tuple[int, int, int, bytes]], list[Record]], None] | None = None,
        observer: Observer | None = None,
        sizes: Sequence[int] = (),
        identity: dict[str, Any] | None = None,
        durations: Durations | None = None,
        history: Sequence[Record] = (),
    ) -> None:
        self.config = config
        self.fixed: FixedSettings = fixed_settings_of(config, offsets)
        self.arithmetic = arithmetic
        self.journal = journal
        self.observer = observer
        self.times: Durations = durations or StepTimes(config.virtual, sub_seed(config.seed, "virtual", "steps"))
        self.network = Network(
            self.times, config.virtual.loss, config.virtual.bandwidth, sub_seed(config.seed, "virtual", "network")
        )
        self.now = max((record.time_ns for record in history), default=0)
        self.order = 0
        self.events = 0
        self.heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.records: list[Record] = list(history)
        self.inputs: list[tuple[int, int, int, bytes]] = []
        self.finished = ""
        self.failed = ""
        self.evaluated_at = -1
        self.outlasting: tuple[Callable[..., None], ...] = ()
        self.lost = False
        self.last_loss: float | None = None
        self.sizes = list(sizes) or [1] * len(offsets)
        self.identity = identity or {}
        self.merged_tokens = [0] * len(offsets)
        self.supervisor = ForeignProcess(SUPERVISOR)
        self.evaluator = ForeignProcess(EVALUATOR)
        self.syncer = SyncerProcess(syncer.new_state(self.fixed, settings_book_of(config)), 1)
        self.learners: dict[int, LearnerProcess] = {}
        self.striker = Striker(self, plan)
        self._encode = msgspec.msgpack.Encoder().encode
        if not history:
            self._begin()

    def _begin(self) -> None:
        """Every process of a new run starts."""
        self.at(self.times.begin_ns(SYNCER), self._start_syncer, ("new", ()))
        for learner in range(self.config.learners):
            late = self.striker.late.get(learner)
            if late is None:
                self.at(self.times.begin_ns(process_of(learner)), self.start_learner, (learner, 1))
            else:
                self.at(0, self._strike, (late,))

    # the heap

    def at(self, time_ns: int, what: Callable[..., None], arguments: tuple[Any, ...] = ()) -> None:
        """Let ``what`` happen at a time; equal times keep the order in which they were asked for."""
        self.order += 1
        heappush(self.heap, (time_ns, self.order, what, arguments))

    def run(self, until_ns: int | None = None, until: Callable[[World], bool] | None = None) -> None:
        """Go on until the run has finished, failed, or the given time or condition has come."""
        while self.heap and not self.finished and not self.failed:
            if until_ns is not None and self.heap[0][0] > until_ns:
                self.now = until_ns
                return
            self.step()
            if until is not None and until(self):
                return

    def step(self) -> None:
        """Let the next event happen."""
        self.now, _, what, arguments = heappop(self.heap)
        self.events += 1
        what(*arguments)
        if self.striker.waiting:
            self.striker.look()
        if self.network.acting.used_up:
            self.striker.look_for_used_up(self.network.acting)
        if self.observer is not None:
            self.observer.after_event(self)

    def _strike(self, fault: Fault) -> None:
        self.striker.strike(fault)

    def delay_ns(self) -> int:
        """One-way delay of what is no message: a socket that opens or closes [ns]."""
        return self.times.delay_ns(self.network.count)

    # processes

    def start_learner(self, learner: int, number: int, snapshot: int | None = None) -> None:
        """A learner process starts, with what a snapshot has of it; its machine is there after the start-up time."""
        process = LearnerProcess(learner, number, self.fixed, learner_settings_of(self.config))
        if snapshot is not None:
            copies.restore(process.machine.state, self.arithmetic.facts(snapshot, learner), snapshot)
        self.learners[learner] = process
        self.supervise(Kind.PROCESS_STARTED, peer=process_of(learner), value=float(number), detail=dict(self.identity))
        self.at(self.now + self.times.start_ns(learner, number), self.wake_up_learner, (process,))

    def is_wanted(self, learner: int) -> bool:
        """Whether a process of a learner may be started: it was not removed."""
        return learner not in self.syncer.machine.state.removed

    def _end_removed(self, learner: int) -> None:
        """A removed learner that has not heard of it, or cannot leave, is killed."""
        process = self.learners.get(learner)
        if process is not None and process.alive:
            self.kill_learner(learner)

    def wake_up_learner(self, process: LearnerProcess) -> None:
        """The machine of a learner's process begins."""
        if process.alive:
            process.started = True
            self._do_all(process, process.machine.start(self.now))
            self.schedule_wake(process)

    def _start_syncer(
        self,
        reason: str,
        uncommitted: tuple[tuple[int, int, int], ...],
        cut: dict[str, Any] | None = None,
        aborted: tuple[tuple[int, int], ...] = (),
    ) -> None:
        process = self.syncer
        process.started = True
        self._do_all(process, process.machine.start(self.now, reason, uncommitted, cut, aborted))
        self.schedule_wake(process)
        for foreign in (self.supervisor, self.evaluator):
            self.report(foreign)
        self.evaluate_when_due()

    def restart_syncer(self) -> None:
        """A new syncer process reads the journal and the slots."""
        found = restart.restore(self.fixed, settings_book_of(self.config), self.records)
        self.arithmetic.recover(found.state.versions)
        self.syncer = SyncerProcess(found.state, self.syncer.life + 1)
        self._start_syncer("restart", tuple(found.uncommitted))

    def lose_everything(self) -> None:
        """Every process is killed, supervisor and evaluator too; what is under way is lost, faults to come stay."""
        self.lost = True
        for learner, process in self.learners.items():
            if process.alive:
                process.alive = False
                process.token += 1
                self.arithmetic.drop(learner)
        if self.syncer.alive:
            release_what_died(self, self.syncer)
        self.syncer.alive = False
        for connection in self.network.connections.values():
            connection.open = False
        self.heap = [event for event in self.heap if event[2] in (*self.striker.outlasting, self.ask, *self.outlasting)]
        heapify(self.heap)
        self.inputs = []

    def resume_run(self, snapshot: int | None = None, rest: Rest | None = None) -> None:
        """Go on from the journal and the slots, or go back to a snapshot (-1: the newest); all processes start anew.

        Of the plan of faults goes on what is left, the ``rest``; in the world that was lost it is still there.

        Raises
        ------
        LookupError
            There is no such snapshot.
        """
        cut = None
        if snapshot is not None:
            cut = restart.cut_of(self.records, snapshot)
            if cut is None:
                raise LookupError(f"there is no snapshot {snapshot} to go back to")
        found = restart.restore(self.fixed, settings_book_of(self.config), self.records, cut)
        if cut is None:
            self.arithmetic.recover(found.state.versions)
        else:
            self.arithmetic.go_back(cut["snapshot"])
        self.finished = self.failed = ""
        self.lost = False
        self.merged_tokens = merged_tokens(self.records, len(self.sizes), cut)
        for foreign in (self.supervisor, self.evaluator):
            foreign.begin_again(found.state.known_seq.get(foreign.process, 0), found.state.epoch, found.state.clock)
        self.evaluated_at = -1
        self.syncer = SyncerProcess(found.state, self.syncer.life + 1)
        self._start_syncer("resume", tuple(found.uncommitted), cut, tuple(found.aborted))
        if rest is not None:
            self.striker.go_on(rest)
        parts = cut["parts"] if cut is not None else {}
        for learner, member in found.state.members.items():
            if learner in found.state.removed:
                continue
            number = max(member.process_number, member.ended, self._number_of(learner)) + 1
            self.start_learner(learner, number, cut["snapshot"] if cut is not None and str(learner) in parts else None)
        for learner in quorum.expected(found.state):
            if learner not in found.state.members and learner not in self.striker.held:
                self.start_learner(learner, self._number_of(learner) + 1)

    def _number_of(self, learner: int) -> int:
        process = self.learners.get(learner)
        return process.number if process is not None else 0

    def kill_learner(self, learner: int, how: str = "SIGKILL") -> None:
        """No further action; the supervisor sees it, and the socket closes."""
        process = self.learners[learner]
        process.alive = False
        process.token += 1
        process.queue.clear()
        self.arithmetic.drop(learner)
        number = process.machine.state.connection
        self.network.close(number)
        gone = self.times.gone_ns(learner, process.number, self.network.count)
        self.at(self.now + gone, self._tell_syncer, (number,))
        seen = self.times.ended_ns(learner, process.number)
        if seen:
            self.at(self.now + seen, self.note_end, (learner, process.number, how))
        else:
            self.note_end(learner, process.number, how)

    def note_end(self, learner: int, number: int, how: str) -> None:
        """The supervisor sees that a learner's process has ended."""
        self.supervise(Kind.PROCESS_ENDED, peer=process_of(learner), value=float(number), reason=how)

    def kill_syncer(self) -> None:
        """SIGKILL: what is not in the journal never happened; every connection closes."""
        self.syncer.alive = False
        release_what_died(self, self.syncer)
        self.syncer.queue.clear()
        self.supervise(Kind.PROCESS_ENDED, peer=SYNCER, value=float(self.syncer.life), reason="SIGKILL")
        for connection in list(self.network.connections.values()):
            if connection.open:
                connection.open = False
                at = self.now + self.delay_ns()
                self.at(at, self._tell_learner, (connection.learner, connection.number))

    def stop(self, process: VirtualProcess) -> None:
        """SIGSTOP: inputs wait, the step in progress stands still."""
        process.stops += 1
        if process.stops == 1 and isinstance(process, LearnerProcess) and process.step is not None:
            process.step_left = process.step_end - self.now
            process.token += 1

    def resume(self, process: VirtualProcess) -> None:
        """SIGCONT: the step goes on, inputs that waited are taken in order."""
        process.stops -= 1
        if process.stops or not process.alive:
            return
        if isinstance(process, LearnerProcess) and process.step is not None:
            process.step_end = self.now + process.step_left
            self.at(process.step_end, step_ended, (self, process, process.token))
        waiting = process.queue
        if not waiting and process.started:
            waiting.append(ev.Woken())
        while waiting and process.alive and not process.stops:
            self._take(process, waiting.popleft())

    def _tell_syncer(self, number: int) -> None:
        self.give(self.syncer, ev.Disconnected(number))

    def _tell_learner(self, learner: int, number: int) -> None:
        self.give(self.learners[learner], ev.Disconnected(number))

    # inputs

    def give(self, process: VirtualProcess, event: Any) -> None:
        """An input for a machine: taken now, or when its process goes on."""
        if not process.alive or not process.started:
            return
        if process.stops:
            process.queue.append(event)
        else:
            self._take(process, event)

    def _take(self, process: VirtualProcess, event: Any) -> None:
        if self.observer is not None:
            self.observer.on_input(self, process.process, event)
        if process.process == SYNCER and self.journal is not None:
            self.inputs.append((SYNCER, process.machine.state.incarnation, self.now, self._encode(event)))
        self._do_all(process, process.machine.handle(self.now, event))
        self.journal_inputs()
        self.schedule_wake(process)

    def schedule_wake(self, process: VirtualProcess) -> None:
        """Have a machine woken when it wants to be."""
        wake = process.machine.wake_at
        if wake >= 0 and (process.scheduled_wake < 0 or wake < process.scheduled_wake):
            process.scheduled_wake = wake
            late = self.times.late_ns(_graces(process.machine.state, wake)) if process is self.syncer else 0
            self.at(wake + late, self._wake, (process, wake))

    def _wake(self, process: VirtualProcess, asked: int) -> None:
        if process.scheduled_wake != asked or not process.alive:
            return
        process.scheduled_wake = -1
        if process.stops:
            return
        if self.now >= process.machine.wake_at:
            self._take(process, ev.Woken())
        else:
            self.schedule_wake(process)

    def ask(self, values: dict[str, Any], who: str) -> None:
        """Somebody asks the syncer for other settings; a dead syncer hears nothing."""
        self.give(self.syncer, ev.SettingsAsked(values, who))

    def _do_all(self, process: VirtualProcess, todo: list[act.Action]) -> None:
        for action in todo:
            if self.observer is not None:
                self.observer.on_action(self, process.process, action)
            if isinstance(process, SyncerProcess):
                do_for_syncer(self, process, action)
            elif isinstance(process, LearnerProcess):
                do_for_learner(self, process, action)

    # the journal

    def journal_records(self, records: list[Record]) -> None:
        """Records, behind the input that they follow from, in one write."""
        if self.journal is not None:
            inputs, self.inputs = self.inputs, []
            self.journal(inputs, records)
        self.records.extend(records)
        for record in records:
            if record.kind == Kind.MERGED:
                self.merged_tokens[record.fragment] += record.tokens
            elif record.kind == Kind.LEARNER_ADDED:
                self.at(self.now, self.start_learner, (learner_of(record.peer), 1))
            elif record.kind == Kind.LEARNER_LOST and record.reason == "removed":
                self.at(self.now + REMOVE_LIMIT_NS, self._end_removed, (learner_of(record.peer),))

    def journal_inputs(self) -> None:
        """The input that is being handled, if no record has taken it along."""
        if self.inputs:
            self.journal_records([])

    # the supervisor and the evaluator

    def supervise(self, kind: Kind, **columns: Any) -> None:
        """A record of the supervisor, on its way to the syncer."""
        self.supervisor.record(self.now, kind, **columns)
        self.at(self.now + REPORT_NS, self.report, (self.supervisor,))

    def report(self, foreign: ForeignProcess) -> None:
        """Give the syncer what it has not journalled; its predecessor may have died with it."""
        if not (self.syncer.alive and self.syncer.started):
            return
        known = self.syncer.machine.state.known_seq.get(foreign.process, 0)
        foreign.unsent = [record for record in foreign.unsent if record.seq > known]
        if foreign.unsent:
            self.give(self.syncer, ev.RecordsCame(foreign.process, list(foreign.unsent)))

    def evaluate_when_due(self, last: bool = False) -> None:
        """At the start, every ``eval_every`` merges, and at the end, which whoever stops the run says."""
        state = self.syncer.machine.state
        every, merges = self.config.eval_every, state.merges
        due = last or not merges % max(every, 1) or merges == self.config.rounds
        if not every or merges == self.evaluated_at or not due:
            return
        loss = self.arithmetic.evaluate()
        if loss is None:
            return
        self.evaluated_at = merges
        self.last_loss = loss
        tokens = sum(size * merged for size, merged in zip(self.sizes, self.merged_tokens, strict=True))
        self.evaluator.record(
            self.now,
            Kind.EVALUATED,
            value=loss,
            steps=merges,
            tokens=tokens // sum(self.sizes),
            detail={"versions": list(state.versions), "seconds": 0.0},
        )
        self.report(self.evaluator)


def _graces(state: SyncerState, wake: int) -> list[int]:
    """Rounds whose grace window is over at a time."""
    return [t for t, r in state.rounds.items() if r.state == RoundState.GRACE and r.quorum_at + r.window_ns == wake]
