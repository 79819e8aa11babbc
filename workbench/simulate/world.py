"""The virtual-time driver: the machines of all processes, an event heap, and a modelled network.

It owns no protocol logic: it tells machines what happened and does what they return, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, Protocol

import msgspec

from workbench.algorithms.seeds import sub_seed
from workbench.config import RunConfig
from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol import syncer
from workbench.protocol.faults import NO_FAULTS, Fault, FaultPlan
from workbench.protocol.foreign import ForeignProcess
from workbench.protocol.records import SUPERVISOR, SYNCER, Kind, Record, learner_of, process_of
from workbench.protocol.round_state import RoundState
from workbench.protocol.settings import (
    FixedSettings,
    fixed_settings_of,
    settings_book_of,
)
from workbench.protocol.syncer_state import SyncerState
from workbench.simulate.arithmetic import Arithmetic
from workbench.simulate.doing import do_for_learner, do_for_syncer
from workbench.simulate.durations import Durations, StepTimes
from workbench.simulate.evaluating import Evaluations
from workbench.simulate.lives import end_removed, start_learner, start_syncer
from workbench.simulate.network import Network
from workbench.simulate.processes import LearnerProcess, SyncerProcess, VirtualProcess
from workbench.simulate.striking import Striker

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
        The journal of a run that is resumed: nothing starts before `workbench.simulate.outages.resume_run`.
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
        self.outlasting: tuple[Callable[..., None], ...] = ()
        self.after_end: Callable[[World], None] | None = None
        self.lost = False
        self.identity = identity or {}
        self.supervisor = ForeignProcess(SUPERVISOR)
        self.evaluations = Evaluations(self, list(sizes) or [1] * len(offsets))
        self.syncer = SyncerProcess(syncer.new_state(self.fixed, settings_book_of(config)), 1)
        self.learners: dict[int, LearnerProcess] = {}
        self.striker = Striker(self, plan)
        self._encode = msgspec.msgpack.Encoder().encode
        if not history:
            self._begin()

    def _begin(self) -> None:
        """Every process of a new run starts."""
        self.at(self.times.begin_ns(SYNCER), start_syncer, (self, "new", ()))
        for learner in range(self.config.learners):
            late = self.striker.late.get(learner)
            if late is None:
                self.at(self.times.begin_ns(process_of(learner)), start_learner, (self, learner, 1))
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
        if self.finished and self.after_end is not None:
            self.after_end(self)

    def _strike(self, fault: Fault) -> None:
        self.striker.strike(fault)

    def delay_ns(self) -> int:
        """One-way delay of what is no message: a socket that opens or closes [ns]."""
        return self.times.delay_ns(self.network.count)

    # inputs

    def give(self, process: VirtualProcess, event: Any) -> None:
        """An input for a machine: taken now, or when its process goes on."""
        if not process.alive or not process.started:
            return
        if process.stops:
            process.queue.append(event)
        else:
            self.take(process, event)

    def take(self, process: VirtualProcess, event: Any) -> None:
        """Give a machine that goes on an input, and do what it returns."""
        if self.observer is not None:
            self.observer.on_input(self, process.process, event)
        if process.process == SYNCER and self.journal is not None:
            self.inputs.append((SYNCER, process.machine.state.incarnation, self.now, self._encode(event)))
        self.do_all(process, process.machine.handle(self.now, event))
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
            self.take(process, ev.Woken())
        else:
            self.schedule_wake(process)

    def ask(self, values: dict[str, Any], who: str) -> None:
        """Somebody asks the syncer for other settings; a dead syncer hears nothing."""
        self.give(self.syncer, ev.SettingsAsked(values, who))

    def do_all(self, process: VirtualProcess, todo: list[act.Action]) -> None:
        """Do what a machine returned."""
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
                self.evaluations.note(record)
            elif record.kind == Kind.LEARNER_ADDED:
                self.at(self.now, start_learner, (self, learner_of(record.peer), 1))
            elif record.kind == Kind.LEARNER_LOST and record.reason == "removed":
                self.at(self.now + REMOVE_LIMIT_NS, end_removed, (self, learner_of(record.peer)))

    def journal_inputs(self) -> None:
        """The input that is being handled, if no record has taken it along."""
        if self.inputs:
            self.journal_records([])

    # the supervisor

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


def _graces(state: SyncerState, wake: int) -> list[int]:
    """Rounds whose grace window is over at a time."""
    return [t for t, r in state.rounds.items() if r.state == RoundState.GRACE and r.quorum_at + r.window_ns == wake]
