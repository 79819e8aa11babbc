"""Faults at work: when each strikes, what it does to a world, and when it is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.protocol.acting import Acting, ActingFaults, seeded
from workbench.protocol.faults import LASTING_KINDS, NUMBER_KINDS, Fault, FaultPlan, ended, injected
from workbench.protocol.plans import Rest, has_passed, planned_words
from workbench.protocol.poisoning import Poisons
from workbench.protocol.records import Kind
from workbench.simulate import acts
from workbench.simulate.processes import LearnerProcess

if TYPE_CHECKING:
    from workbench.simulate.world import World


class Striker:
    """Schedules the faults of a plan and lets them act.

    Attributes
    ----------
    struck : list of (fault, states of the rounds in flight, effect)
        What happened, in this world.
    before : int
        Number of the last fault before it.
    skipped : list of str
        Faults that came due while nothing ran.
    held : set of int
        Learners that are yet to start late in a run that goes on.
    waiting : list of Fault
        Faults that wait for a state of a round, for a round or for a merge.
    """

    def __init__(self, world: World, plan: FaultPlan) -> None:
        self.world = world
        self.struck: list[tuple[Fault, tuple[int, ...], bool]] = []
        self.waiting: list[Fault] = []
        self.late: dict[int, Fault] = {f.learner: f for f in plan.faults if f.kind == "late"}
        self.began: dict[int, int] = {}
        self.before = 0
        self.skipped: list[str] = []
        self.held: set[int] = set()
        self._acting_on: dict[int, Fault] = {}
        self.plan(plan)

    def plan(self, plan: FaultPlan) -> None:
        """Have the faults of a plan strike when their time comes; late starts are the world's."""
        for fault in plan.faults:
            if fault.kind != "late" and fault.at_round < 0 and fault.at_merge < 0:
                self.world.at(fault.at_ns, self._due, (fault,))
        self.waiting += [f for f in plan.faults if f.at_round >= 0 or f.at_merge >= 0]

    @property
    def outlasting(self) -> tuple[Callable[..., None], ...]:
        """What is yet to come of faults when every process is gone."""
        return self._due, acts.end

    def _due(self, fault: Fault) -> None:
        if fault.round_state < 0:
            self.strike(fault)
        else:
            self.waiting.append(fault)

    def look(self) -> None:
        """Strike what waits for something that is now so."""
        if not self.world.syncer.alive:
            return
        state = self.world.syncer.machine.state
        states = {r.state for r in state.rounds.values()}
        for fault in list(self.waiting):
            if self._has_come(fault, state.opened_t, state.merges, states):
                self.waiting.remove(fault)
                self.strike(fault)

    @staticmethod
    def _has_come(fault: Fault, round_: int, merges: int, states: set[int]) -> bool:
        if fault.at_round >= 0:
            return round_ >= fault.at_round
        return merges >= fault.at_merge if fault.at_merge >= 0 else fault.round_state in states

    def strike(self, fault: Fault) -> bool:
        """Let a fault act now; on a target that is gone it is recorded as without effect."""
        world = self.world
        number = self._next()
        states = tuple(r.state for r in world.syncer.machine.state.rounds.values()) if world.syncer.alive else ()
        effect = acts.act(world, Acting(number, replace(fault, seed=seeded(fault, number, world.config.seed))))
        self.struck.append((fault, states, effect))
        self.began[number] = world.now
        world.supervise(Kind.FAULT_INJECTED, **injected(fault, number, world.now, effect))
        self._again(fault)
        return effect

    def _next(self) -> int:
        return self.before + len(self.struck) + 1

    def go_on(self, rest: Rest) -> None:
        """A run goes on with the rest of its plan: what had not struck is yet to come, what lasts acts on."""
        state, now = self.world.syncer.machine.state, self.world.now
        self.before = rest.struck
        to_come = []
        for fault in rest.to_come:
            if has_passed(fault, now, state.merges, state.opened_t):
                self._skip(fault)
            else:
                to_come.append(fault)
        self.plan(FaultPlan(tuple(to_come)))
        for fault in to_come:
            if fault.kind == "late":
                self.held.add(fault.learner)
                self.strike(fault)
        for number, fault, began_ns in rest.acting:
            self._act_on(number, fault, began_ns)

    def _skip(self, fault: Fault) -> None:
        """A fault came due while nothing ran: it is recorded, and strikes nobody."""
        world, number = self.world, self._next()
        self.struck.append((fault, (), False))
        world.supervise(Kind.FAULT_INJECTED, **injected(fault, number, world.now, False, skipped=True))
        self.skipped.append(planned_words(fault))
        self._again(fault)

    def _act_on(self, number: int, fault: Fault, began_ns: int) -> None:
        """A fault that began before the run was lost acts on; one whose time is up by then is over."""
        world, until = self.world, began_ns + fault.for_ns
        self.began[number] = began_ns
        acting = Acting(number, fault)
        if fault.kind == "late":
            self.held.add(fault.learner)
            world.at(max(world.now, until), acts.start_again, (world, fault.learner, 1))
            return
        self._acting_on[number] = fault
        world.network.acting.begin(acting)
        if fault.for_ns:
            world.at(max(world.now, until), acts.end, (world, acting))

    def take_up(self, fault: Fault, began_ns: int, now: int, effect: bool, used: int = 0) -> None:
        """A fault that struck before this world's time: what is left of it at ``now`` acts on.

        ``used`` says on how many messages a counted fault has acted.
        """
        number = self._next()
        self.struck.append((fault, (), effect))
        self.began[number] = began_ns
        acting, until = Acting(number, fault), began_ns + fault.for_ns
        if not effect or (fault.for_ns and until <= now):
            return
        process = self.world.syncer if fault.learner < 0 else self.world.learners.get(fault.learner)
        if fault.kind in LASTING_KINDS:
            self.world.network.acting.begin(acting)
            if fault.for_ns:
                self.world.at(until, acts.end, (self.world, acting))
        elif fault.kind in NUMBER_KINDS and used < fault.count:
            acts.poison(self.world, acting)
            if isinstance(process, LearnerProcess):
                process.poisons.skip(used)
        elif fault.kind in ("stall", "stall_syncer") and process is not None and process.alive:
            process.stops += 1
            self.world.at(until, acts.let_go_on, (self.world, process, acting))

    def _again(self, fault: Fault) -> None:
        if fault.every_ns and fault.times != 1:
            later = replace(fault, at_round=-1, at_merge=-1, times=max(0, fault.times - 1))
            self.world.at(self.world.now + fault.every_ns, self._due, (later,))

    def over(self, acting: Acting, why: str = "over") -> None:
        """A fault acts no longer."""
        began, now = self.began[acting.number], self.world.now
        self.world.supervise(Kind.FAULT_ENDED, **ended(acting.fault, acting.number, began, now, why))

    def look_for_used_up(self, where: ActingFaults | Poisons) -> None:
        """Faults that have acted on their last message are over."""
        numbers, where.used_up = where.used_up, []
        for number in numbers:
            fault = self._acting_on[number] if number <= self.before else self.struck[number - self.before - 1][0]
            self.world.network.acting.end(fault.learner, number)
            self.over(Acting(number, fault), "used_up")

    def heal(self, learner: int) -> int:
        """End all that lasts at a learner; how many faults that were."""
        acting = self.world.network.acting
        found = acting.of(learner)
        acting.set(learner, [])
        for one in found:
            self.over(one, "healed")
        return len(found)
