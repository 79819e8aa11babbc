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
from workbench.protocol import restart, syncer
from workbench.protocol.messages import Fragment, Update
from workbench.protocol.records import EVALUATOR, SUPERVISOR, SYNCER, Kind, Record, process_of
from workbench.protocol.settings import (
    SECOND,
    FixedSettings,
    SettingsBook,
    fixed_settings_of,
    learner_settings_of,
    merge_settings_of,
    policy_of,
)
from workbench.simulate.arithmetic import Arithmetic
from workbench.simulate.durations import StepTimes
from workbench.simulate.faults import FaultPlan
from workbench.simulate.network import TO_LEARNER, TO_SYNCER, Network
from workbench.simulate.processes import ForeignProcess, LearnerProcess, SyncerProcess, VirtualProcess
from workbench.simulate.striking import Striker

CONTROL_BYTES = 256
COMMIT_NS = 100_000
REPORT_NS = 1_000_000


class Observer(Protocol):
    """Looks at everything; changes nothing."""

    def on_input(self, world: World, process: int, event: Any) -> None:
        """Before a machine takes an input."""

    def on_action(self, world: World, process: int, action: act.Action) -> None:
        """Before an action is done."""

    def after_event(self, world: World) -> None:
        """After everything that an event caused."""


def settings_book_of(config: RunConfig) -> SettingsBook:
    """The settings that a run begins with."""
    return SettingsBook(0, policy_of(config), merge_settings_of(config), learner_settings_of(config), config.inner.rate)


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
    """

    def __init__(
        self,
        config: RunConfig,
        offsets: tuple[int, ...],
        arithmetic: Arithmetic,
        plan: FaultPlan = FaultPlan(),
        journal: Callable[[list[tuple[int, int, int, bytes]], list[Record]], None] | None = None,
        observer: Observer | None = None,
        sizes: Sequence[int] = (),
        identity: dict[str, Any] | None = None,
    ) -> None:
        self.config = config
        self.fixed: FixedSettings = fixed_settings_of(config, offsets)
        self.arithmetic = arithmetic
        self.journal = journal
        self.observer = observer
        self.times = StepTimes(config.virtual, sub_seed(config.seed, "virtual", "steps"))
        self.network = Network(
            self.times, config.virtual.loss, config.virtual.bandwidth, sub_seed(config.seed, "virtual", "network")
        )
        self.now = 0
        self.order = 0
        self.events = 0
        self.heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.records: list[Record] = []
        self.inputs: list[tuple[int, int, int, bytes]] = []
        self.finished = ""
        self.failed = ""
        self.evaluated_at = -1
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
        self.at(0, self._start_syncer, ("new", ()))
        for learner in range(config.learners):
            self.at(0, self.start_learner, (learner, 1))

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
        if self.observer is not None:
            self.observer.after_event(self)

    # processes

    def start_learner(self, learner: int, number: int) -> None:
        """A learner process starts; its machine is there after the start-up time."""
        process = LearnerProcess(learner, number, self.fixed, learner_settings_of(self.config))
        self.learners[learner] = process
        self.supervise(
            Kind.PROCESS_STARTED, peer=process_of(learner), value=float(number), detail=dict(self.identity)
        )
        self.at(self.now + int(self.config.virtual.start_s * SECOND), self._wake_up_learner, (process,))

    def _wake_up_learner(self, process: LearnerProcess) -> None:
        if process.alive:
            process.started = True
            self._do_all(process, process.machine.start(self.now))
            self._schedule_wake(process)

    def _start_syncer(self, reason: str, uncommitted: tuple[tuple[int, int, int], ...]) -> None:
        process = self.syncer
        process.started = True
        self._do_all(process, process.machine.start(self.now, reason, uncommitted))
        self._schedule_wake(process)
        for foreign in (self.supervisor, self.evaluator):
            self._report(foreign)
        self._evaluate_when_due()

    def restart_syncer(self) -> None:
        """A new syncer process reads the journal and the slots."""
        found = restart.restore(self.fixed, settings_book_of(self.config), self.records)
        self.arithmetic.recover(found.state.versions)
        self.syncer = SyncerProcess(found.state, self.syncer.life + 1)
        self._start_syncer("restart", tuple(found.uncommitted))

    def kill_learner(self, learner: int) -> None:
        """SIGKILL: no further action; the supervisor sees it, and the socket closes."""
        process = self.learners[learner]
        process.alive = False
        process.token += 1
        process.queue.clear()
        self.arithmetic.drop(learner)
        number = process.machine.state.connection
        self._close(number)
        self.at(self.now + self.times.delay_ns(self.network.count), self._tell_syncer, (number,))
        self.supervise(Kind.PROCESS_ENDED, peer=process_of(learner), value=float(process.number), reason="SIGKILL")

    def kill_syncer(self) -> None:
        """SIGKILL: what is not in the journal never happened; every connection closes."""
        self.syncer.alive = False
        self.syncer.queue.clear()
        self.supervise(Kind.PROCESS_ENDED, peer=SYNCER, value=float(self.syncer.life), reason="SIGKILL")
        for connection in list(self.network.connections.values()):
            if connection.open:
                connection.open = False
                at = self.now + self.times.delay_ns(self.network.count)
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
            self.at(process.step_end, self._step_ended, (process, process.token))
        waiting = process.queue
        if not waiting and process.started:
            waiting.append(ev.Woken())
        while waiting and process.alive and not process.stops:
            self._take(process, waiting.popleft())

    def _close(self, number: int) -> None:
        connection = self.network.connections.get(number)
        if connection is not None:
            connection.open = False

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
        is_syncer = isinstance(process, SyncerProcess)
        if self.observer is not None:
            who = SYNCER if is_syncer else process_of(process.learner)  # type: ignore[attr-defined]
            self.observer.on_input(self, who, event)
        if is_syncer and self.journal is not None:
            self.inputs.append((SYNCER, process.machine.state.incarnation, self.now, self._encode(event)))
        self._do_all(process, process.machine.handle(self.now, event))
        if self.inputs:
            self._flush([])
        self._schedule_wake(process)

    def _schedule_wake(self, process: VirtualProcess) -> None:
        wake = process.machine.wake_at
        if wake >= 0 and (process.scheduled_wake < 0 or wake < process.scheduled_wake):
            process.scheduled_wake = wake
            self.at(wake, self._wake, (process, wake))

    def _wake(self, process: VirtualProcess, asked: int) -> None:
        if process.scheduled_wake != asked or not process.alive:
            return
        process.scheduled_wake = -1
        if process.stops:
            return
        if self.now >= process.machine.wake_at:
            self._take(process, ev.Woken())
        else:
            self._schedule_wake(process)

    def ask(self, values: dict[str, Any], who: str) -> None:
        """Somebody asks the syncer for other settings; a dead syncer hears nothing."""
        self.give(self.syncer, ev.SettingsAsked(values, who))

    # actions

    def _do_all(self, process: VirtualProcess, todo: list[act.Action]) -> None:
        is_syncer = isinstance(process, SyncerProcess)
        who = SYNCER if is_syncer else process_of(process.learner)  # type: ignore[attr-defined]
        for action in todo:
            if self.observer is not None:
                self.observer.on_action(self, who, action)
            kind = type(action)
            if kind is act.Send:
                self._send(process, action)
            elif is_syncer:
                self._do_syncer(process, action)  # type: ignore[arg-type]
            else:
                self._do_learner(process, action)  # type: ignore[arg-type]

    def _flush(self, records: list[Record]) -> None:
        if self.journal is not None:
            inputs, self.inputs = self.inputs, []
            self.journal(inputs, records)
        self.records.extend(records)

    def _do_syncer(self, process: SyncerProcess, action: Any) -> None:
        kind = type(action)
        if kind is act.Append:
            self._flush(action.records)
        elif kind is act.Merge:
            at = self.now + int(self.config.virtual.merge_s * SECOND)
            self.at(at, self._merged, (process, action))
        elif kind is act.Commit:
            self.at(self.now + COMMIT_NS, self._committed, (process, action))
        elif kind is act.Release:
            self.arithmetic.release(action.handle)
        elif kind is act.Finish:
            self.finished = action.reason
        elif kind is act.Fail:
            self.failed = action.reason

    def _merged(self, process: SyncerProcess, order: act.Merge) -> None:
        """The merge is computed when it is through, so that a killed syncer has not made it."""
        if not process.alive:
            return
        numbers = self.arithmetic.merge(order)
        self.give(process, ev.MergeDone(order.round, order.fragment, *numbers))

    def _committed(self, process: SyncerProcess, order: act.Commit) -> None:
        if not process.alive:
            return
        self.arithmetic.commit(order.fragment, order.version)
        merged = next(r for r in reversed(self.records) if r.kind == Kind.MERGED and r.round == order.round)
        self.merged_tokens[order.fragment] += merged.tokens
        self.give(process, ev.CommitDone(order.round, order.fragment, order.version))
        self._evaluate_when_due()

    def _do_learner(self, process: LearnerProcess, action: Any) -> None:
        kind, learner = type(action), process.learner
        if kind is act.StartStep:
            self._begin_step(process, action)
        elif kind is act.Publish:
            self.arithmetic.publish(learner, action.fragment)
        elif kind is act.Capture:
            self._capture(process, action)
        elif kind is act.Fold:
            self.arithmetic.fold(learner, action)
        elif kind is act.ForgetCapture:
            self.arithmetic.forget(learner, action.fragment, action.step)
        elif kind is act.Release:
            self.arithmetic.release(action.handle)
        elif kind is act.Adopt:
            self.give(process, ev.Adopted(self.arithmetic.adopt(learner, action.source)))
        elif kind is act.Connect:
            self._connect(process)
        elif kind is act.Leave:
            process.alive = False
            self.arithmetic.drop(learner)
            self.supervise(Kind.PROCESS_ENDED, peer=process_of(learner), value=float(process.number), reason="exit 0")

    def _connect(self, process: LearnerProcess) -> None:
        """Another connection, if the syncer is there and the link is not cut."""
        self._close(process.machine.state.connection)
        reachable = self.syncer.alive and self.syncer.started
        if reachable and not any(self.network.is_cut(process.learner, d) for d in (TO_SYNCER, TO_LEARNER)):
            number = self.network.open(process.learner, process.number).number
            self.at(self.now + 2 * self.times.delay_ns(self.network.count), self._connected, (process, number))

    def _connected(self, process: LearnerProcess, number: int) -> None:
        if self.network.connections[number].open:
            self.give(process, ev.Connected(number))

    def _begin_step(self, process: LearnerProcess, order: act.StartStep) -> None:
        whole = self.times.step_ns(process.learner, order.step)
        process.injected_ns = int(whole * (process.slow - 1.0)) if process.slow > 1.0 else 0
        process.step = order
        process.step_start = self.now
        process.step_end = self.now + whole + process.injected_ns
        process.token += 1
        self.at(process.step_end, self._step_ended, (process, process.token))

    def _step_ended(self, process: LearnerProcess, token: int) -> None:
        if token != process.token or not process.alive or process.step is None:
            return
        numbers = self.arithmetic.step(process.learner, process.step)
        process.step = None
        event = ev.StepEnded(*numbers, process.step_start, process.injected_ns)
        self.give(process, event)

    def _capture(self, process: LearnerProcess, order: act.Capture) -> None:
        poison = process.poison.pop(0) if process.poison else ""
        if poison:
            self.give(process, ev.FaultActed(poison, order.fragment, {"round": order.round}))
        made = self.arithmetic.capture(process.learner, order.fragment, order.step, order.codec, poison)
        self.give(process, ev.Captured(order.round, order.fragment, made.digest, made.nbytes, made.handle))

    # messages

    def _send(self, process: VirtualProcess, action: act.Send) -> None:
        message: Any = action.message
        if isinstance(process, SyncerProcess):
            if self.inputs:
                self._flush([])
            self._send_down(process, action, message)
            return
        nbytes = message.nbytes if type(message) is Fragment else CONTROL_BYTES
        at = self.network.delivery_at(self.now, action.connection, TO_SYNCER, action.channel, nbytes)
        if at >= 0:
            self.at(at, self._deliver_up, (action.connection, message))
        elif type(message) is Fragment:
            self.arithmetic.release(message.handle)

    def _send_down(self, process: SyncerProcess, action: act.Send, message: Any) -> None:
        nbytes = CONTROL_BYTES
        is_update = type(message) is Update
        if is_update:
            message.handle, nbytes = self.arithmetic.update(message.fragment, message.version)
        at = self.network.delivery_at(self.now, action.connection, TO_LEARNER, action.channel, nbytes)
        if at >= 0:
            self.at(at, self._deliver_down, (action.connection, message))
        elif is_update:
            self.arithmetic.release(message.handle)
        if is_update:
            event = ev.Handed(action.connection, message.fragment, message.version)
            connection = self.network.connections.get(action.connection)
            free = connection.free_at[TO_LEARNER][action.channel] if connection is not None else 0
            self.at(max(self.now, free), self._hand, (process, event))

    def _hand(self, process: SyncerProcess, event: ev.Handed) -> None:
        self.give(process, event)

    def _deliver_up(self, connection: int, message: Any) -> None:
        if type(message) is Fragment:
            finite, fits, norm = self.arithmetic.looks(message.handle)
            self.give(self.syncer, ev.Received(connection, message, finite, fits, norm))
        else:
            self.give(self.syncer, ev.Received(connection, message))

    def _deliver_down(self, connection: int, message: Any) -> None:
        link = self.network.connections[connection]
        process = self.learners[link.learner]
        if process.number == link.process_number and process.alive:
            self.give(process, ev.Received(connection, message))
        elif type(message) is Update:
            self.arithmetic.release(message.handle)

    # the supervisor and the evaluator

    def supervise(self, kind: Kind, **columns: Any) -> None:
        """A record of the supervisor, on its way to the syncer."""
        self.supervisor.record(self.now, kind, **columns)
        self.at(self.now + REPORT_NS, self._report, (self.supervisor,))

    def _report(self, foreign: ForeignProcess) -> None:
        if self.syncer.alive and self.syncer.started and foreign.unsent:
            records, foreign.unsent = foreign.unsent, []
            self.give(self.syncer, ev.RecordsCame(foreign.process, records))

    def _evaluate_when_due(self) -> None:
        """At the start, every ``eval_every`` merges, and at the end."""
        state = self.syncer.machine.state
        every, merges = self.config.eval_every, state.merges
        due = every and (merges % every == 0 or merges == self.config.rounds) and merges != self.evaluated_at
        if not due:
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
        self._report(self.evaluator)
