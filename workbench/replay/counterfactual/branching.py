"""A world that goes on where a tape is left: every machine as it was, what was under way still under way."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from workbench.protocol import actions as act
from workbench.protocol import copies
from workbench.protocol import events as ev
from workbench.protocol.faults import NUMBER_KINDS
from workbench.protocol.records import EVALUATOR, SUPERVISOR, Kind, Record, learner_of, process_of
from workbench.protocol.settings import learner_settings_of
from workbench.replay.counterfactual.again import come_again, end_again
from workbench.replay.counterfactual.durations import KeyedTimes
from workbench.replay.counterfactual.lives import Cut, Life
from workbench.replay.counterfactual.parent import Parent
from workbench.replay.counterfactual.plan import Struck
from workbench.replay.counterfactual.rebuilt import Rebuilt
from workbench.replay.counterfactual.retelling import Retelling
from workbench.replay.counterfactual.spans import overlap
from workbench.replay.counterfactual.underway import UnderWay
from workbench.simulate import lives
from workbench.simulate.doing import adopted, do_for_syncer, step_ended
from workbench.simulate.network import Connection as Link
from workbench.simulate.numbers import Numbers
from workbench.simulate.processes import LearnerProcess, SyncerProcess
from workbench.simulate.world import World

FAR = 2**62
Journal = Callable[[list[tuple[int, int, int, bytes]], list[Record]], None]


def assemble(parent: Parent, told: Retelling, cut: Cut, times: KeyedTimes, journal: Journal, alone: bool) -> World:
    """Make the world of a branch.

    Parameters
    ----------
    parent : Parent
    told : Retelling
        Up to the branch; used up if ``alone``, else copied.
    cut : Cut
    times : KeyedTimes
    journal : callable
        Takes (inputs, records).
    alone : bool
        Nobody else continues from this retelling.
    """
    numbers, machine = told.numbers, told.machine
    if not alone:
        numbers, machine, cut = _copied(numbers, machine, cut)
    return _Assembly(parent, told, cut, times, numbers, machine, journal).build()


class _Assembly:
    def __init__(
        self,
        parent: Parent,
        told: Retelling,
        cut: Cut,
        times: KeyedTimes,
        numbers: Numbers,
        machine: Any,
        journal: Journal,
    ) -> None:
        self.parent, self.told, self.cut, self.times, self.numbers = parent, told, cut, times, numbers
        self.branch, self.now, self.past = cut.branch, cut.branch.time_ns, cut.branch.past_ns
        config = told.config if told.config.virtual.bandwidth == 0 else told.config.set({"virtual.bandwidth": 0.0})
        self.world = World(
            config,
            told.fixed.offsets,
            numbers,
            journal=journal,
            sizes=numbers.fragmentation.sizes,
            identity={"fingerprint": parent.header.get("fingerprint", {})},
            durations=times,
        )
        self.world.heap.clear()
        self.world.syncer = SyncerProcess(machine.state, told.lives)
        self.world.syncer.machine, self.world.syncer.started = machine, True
        self.under_way = UnderWay(self.world, parent, told, self.branch, numbers, times)

    def build(self) -> World:
        """Everything, in an order in which each finds what it needs."""
        self._past()
        self._links()
        state = self.world.syncer.machine.state
        for learner in (*range(state.fixed.learners), *state.added):
            self._learner(learner)
        self._foreign()
        self._faults()
        self._syncer()
        self._outside()
        return self.world

    @property
    def _is_down(self) -> bool:
        """Whether the syncer is dead at the branch."""
        return any(_is_down(s, self.now) for s in self.cut.struck)

    def _past(self) -> None:
        world = self.world
        world.records = list(self.told.records)
        world.evaluations.begin_again(None)
        self.times.epoch = self.told.machine.state.epoch
        for r in world.records:
            if r.kind == Kind.SYNCER_STARTED and r.detail.get("cut"):
                self.times.sent.clear()
                world.evaluations.evaluated_at = -1
            elif r.kind == Kind.UPDATE_SENT:
                self.times.sent[learner_of(r.peer), r.fragment, r.version] += 1
            elif r.kind == Kind.EVALUATED:
                world.evaluations.evaluated_at, world.evaluations.last_loss = r.steps, r.value

    def _links(self) -> None:
        world, state = self.world, self.world.syncer.machine.state
        connections = self.cut.learners.connections
        world.network.opened = max((c.number for c in connections), default=0)
        world.network.count = self.branch.number
        for c in connections:
            if c.syncer_life == self.told.lives:
                link = Link(c.number, c.learner, c.process_number)
                member = state.members.get(c.learner)
                link.open = member is not None and member.connection == c.number and not self._is_down
                world.network.connections[c.number] = link

    # learners

    def _learner(self, learner: int) -> None:
        """The process that is there, and the one that comes next if what lies before the branch brings it."""
        world, told = self.world, self.cut.learners.lives.get(learner, [])
        begun = [life for life in told if life.started_ns <= self.past]
        gone = not begun or begun[-1].has_ended(self.past)
        lost_ns = min((loss.at_ns for loss in self.parent.losses if loss.again_ns > self.past), default=FAR)
        coming = next((life for life in told if self.past < life.started_ns <= lost_ns), None)
        if gone and coming is not None:
            world.at(coming.started_ns, lives.start_learner, (world, learner, coming.number))
        if not begun:
            return
        process = LearnerProcess(learner, begun[-1].number, world.fixed, learner_settings_of(world.config))
        self.times.numbers[learner] = process.number
        world.learners[learner] = process
        if gone:
            process.alive = False
            self.numbers.drop(learner)
            if begun[-1].seen_ns > self.past:
                world.at(begun[-1].seen_ns, lives.note_end, (world, learner, process.number, "SIGKILL"))
        else:
            self._alive(process, begun[-1])

    def _alive(self, process: LearnerProcess, life: Life) -> None:
        found = self.cut.learners.rebuilt.get(process.learner)
        if found is None:  # it has not been welcomed: it asks by itself
            if life.snapshot >= 0:
                facts = self.numbers.facts(life.snapshot, process.learner)
                copies.restore(process.machine.state, facts, life.snapshot)
            at = life.started_ns + self.times.start_ns(process.learner, life.number)
            self.world.at(max(at, self.now), lives.wake_up_learner, (self.world, process))
            return
        process.machine, process.started = found.machine, True
        state = found.machine.state
        if process.learner in self.numbers.learners and state.n:
            self.numbers.learners[process.learner].publish()
        for p, update in state.inbox.items():
            update.handle = self.under_way.theta_handle(p, update.version)
        if state.stepping and found.step is not None:
            self._stepping(process, found)
        if state.adopting is not None:
            order = state.adopting
            at = self.now + self.times.adopt_ns(process.learner, life.number, order.source)
            self.world.at(at, adopted, (self.world, process, order))
        self.under_way.states(process, found)
        self.under_way.mail(process.learner, found.unheard, state)
        self.world.at(max(self.now, state.wake_at), _wake, (self.world, process))

    def _stepping(self, process: LearnerProcess, found: Rebuilt) -> None:
        assert found.step is not None
        process.step, n = found.step, found.step.step
        since = found.since_ns + self.times.measured.offsets[process.learner]
        process.step_start = since + self.times.pause_ns(process.learner, n)
        process.step_end = since + self.times.step_ns(process.learner, n)

    def _slowed(self, process: LearnerProcess) -> None:
        """A step in progress ends; under a slow-down, or through a stall, so much later."""
        if process.step is None:
            return
        world, whole = self.world, process.step_end - process.step_start
        factor = world.network.acting.slow_factor(process.learner)
        process.injected_ns = int(whole * (factor - 1.0)) if factor > 1.0 else 0
        spans = [(s.time_ns, s.time_ns + s.fault.for_ns) for s in self.cut.struck if _stalls(s, process.learner)]
        run, stood = whole + process.injected_ns, overlap(spans, process.step_start, self.now)
        process.step_end = process.step_start + run + stood
        process.token += 1
        if process.stops:
            process.step_left = process.step_end - self.now
        else:
            world.at(process.step_end, step_ended, (world, process, process.token))

    # supervisor, evaluator, faults

    def _foreign(self) -> None:
        world, state = self.world, self.world.syncer.machine.state
        for foreign, process in ((world.supervisor, SUPERVISOR), (world.evaluations.process, EVALUATOR)):
            own = [r for r in self.told.records if r.process == process]
            foreign.seq, foreign.epoch = state.known_seq.get(process, 0), state.epoch
            foreign.clock = own[-1].clock if own else ()
            foreign.life = own[-1].incarnation if own else 1
        kept = {s.event for s in self.cut.struck}
        for event, r in enumerate(self.parent.records):
            is_late = r.process == SUPERVISOR and r.seq > state.known_seq.get(SUPERVISOR, 0) and r.time_ns <= self.past
            if is_late and (r.kind != Kind.FAULT_INJECTED or event in kept):
                columns = {c: getattr(r, c) for c in ("peer", "value", "reason", "detail")}
                world.supervisor.record(r.time_ns, Kind(r.kind), **columns)
        if world.supervisor.unsent:
            world.at(self.now, world.report, (world.supervisor,))

    def _faults(self) -> None:
        """Those that struck act on; those to come are planned; processes that end by themselves end again."""
        world = self.world
        for s in self.cut.struck:
            world.striker.take_up(s.fault, s.time_ns, self.now, s.effect, self._used(s))
        world.striker.plan(self.cut.plan)
        for process in world.learners.values():
            self._slowed(process)
        for end in self.cut.ends:
            if end.time_ns > self.now and end.learner < world.config.learners:
                world.at(end.time_ns, end_again, (world, end))

    def _used(self, s: Struck) -> int:
        """On how many contributions a numeric fault has acted."""
        if s.fault.kind not in NUMBER_KINDS:
            return 0
        applied = (r for r in self.told.records if r.kind == Kind.FAULT_APPLIED and r.reason == s.fault.kind)
        return sum(r.process == process_of(s.fault.learner) and r.time_ns >= s.time_ns for r in applied)

    # the syncer

    def _syncer(self) -> None:
        """The answer that is still to be given, and what it waits for; nothing reaches it before the branch."""
        world, process = self.world, self.world.syncer
        down = next((s for s in self.cut.struck if _is_down(s, self.now)), None)
        if down is not None:
            process.alive = False
            world.at(down.time_ns + max(down.fault.for_ns, 1), lives.restart_syncer, (world,))
            return
        process.stops += 1
        self.under_way.merges()
        self.under_way.snapshot()
        self.under_way.inputs()
        world.at(self.now, self._take_over)

    def _take_over(self) -> None:
        """The syncer answers the input of the branch; its records are in the journal already."""
        world, process = self.world, self.world.syncer
        for action in self.branch.actions:
            if type(action) is not act.Append:
                do_for_syncer(world, process, action)
        lives.resume(world, process)
        world.evaluations.when_due()
        world.schedule_wake(process)

    def _outside(self) -> None:
        come_again(self.world, self.parent, self.times, self.now, self.branch.number)


def _wake(world: World, process: LearnerProcess) -> None:
    if process.alive and not process.stops:
        world.give(process, ev.Woken())


def _stalls(s: Struck, learner: int) -> bool:
    return s.fault.kind == "stall" and s.fault.learner == learner and s.effect


def _is_down(s: Struck, now: int) -> bool:
    return s.fault.kind == "kill_syncer" and s.effect and s.time_ns <= now < s.time_ns + max(s.fault.for_ns, 1)


def _copied(numbers: Numbers, machine: Any, cut: Cut) -> tuple[Numbers, Any, Cut]:
    """Copies that share nothing that is ever written: text and compiled functions are the same."""
    shared = (numbers.program, numbers.config, numbers.fragmentation)
    memo: dict[int, Any] = {id(item): item for item in shared}
    return copy.deepcopy((numbers, machine, cut), memo)
