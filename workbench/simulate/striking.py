"""Faults at work: when each strikes, what it does to a world, and when it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.protocol.records import SYNCER, Kind, process_of
from workbench.simulate.faults import Fault, FaultPlan
from workbench.simulate.network import TO_LEARNER, TO_SYNCER

if TYPE_CHECKING:
    from workbench.simulate.world import World

_DIRECTIONS = {"cut": (TO_SYNCER, TO_LEARNER), "cut_up": (TO_SYNCER,), "cut_down": (TO_LEARNER,)}


class Striker:
    """Schedules the faults of a plan and lets them act.

    Attributes
    ----------
    struck : list of (fault, states of the rounds in flight, effect)
        What happened.
    waiting : list of Fault
        Faults whose time has come and that wait for a round to be in their state.
    """

    def __init__(self, world: World, plan: FaultPlan) -> None:
        self.world = world
        self.struck: list[tuple[Fault, tuple[int, ...], bool]] = []
        self.waiting: list[Fault] = []
        self.last_ns = 0
        for fault in plan.faults:
            world.at(fault.at_ns, self._due, (fault,))

    def _due(self, fault: Fault) -> None:
        if fault.round_state < 0:
            self.strike(fault)
        else:
            self.waiting.append(fault)

    def look(self) -> None:
        """Strike what waits for a round in its state."""
        if not self.world.syncer.alive:
            return
        states = {r.state for r in self.world.syncer.machine.state.rounds.values()}
        for fault in list(self.waiting):
            if fault.round_state in states:
                self.waiting.remove(fault)
                self.strike(fault)

    def strike(self, fault: Fault) -> None:
        """Let a fault act now; on a target that is gone it is recorded as without effect."""
        world = self.world
        states = tuple(r.state for r in world.syncer.machine.state.rounds.values()) if world.syncer.alive else ()
        effect = _ACTS[fault.kind](world, fault)
        self.struck.append((fault, states, effect))
        if not effect:
            until = world.now
        elif fault.for_ns:
            until = world.now + fault.for_ns
        else:
            until = 2**62 if fault.kind.startswith("kill") else world.now
        self.last_ns = max(self.last_ns, world.now + (fault.for_ns if effect else 0))
        world.supervise(
            Kind.FAULT_INJECTED,
            peer=SYNCER if fault.learner < 0 else process_of(fault.learner),
            reason=fault.kind,
            value=fault.for_ns / 1e9,
            detail={"until_ns": until, "factor": fault.factor, "count": fault.count, "effect": int(effect)},
        )


def _kill(world: World, fault: Fault) -> bool:
    process = world.learners.get(fault.learner)
    if process is None or not process.alive:
        return False
    world.kill_learner(fault.learner)
    if fault.for_ns:
        world.at(world.now + fault.for_ns, _start_again, (world, fault.learner, process.number + 1))
    return True


def _start_again(world: World, learner: int, number: int) -> None:
    if world.learners[learner].number < number:
        world.start_learner(learner, number)


def _stall(world: World, fault: Fault) -> bool:
    process = world.learners.get(fault.learner)
    if process is None or not process.alive:
        return False
    world.stop(process)
    world.at(world.now + fault.for_ns, world.resume, (process,))
    return True


def _slow(world: World, fault: Fault) -> bool:
    process = world.learners.get(fault.learner)
    if process is None or not process.alive:
        return False
    process.slow *= fault.factor
    world.at(world.now + fault.for_ns, _unslow, (process, fault.factor))
    return True


def _unslow(process, factor: float) -> None:  # type: ignore[no-untyped-def]
    process.slow /= factor


def _cut(world: World, fault: Fault) -> bool:
    for direction in _DIRECTIONS[fault.kind]:
        world.network.cut(fault.learner, direction, True)
        world.at(world.now + fault.for_ns, world.network.cut, (fault.learner, direction, False))
    return True


def _lose(world: World, fault: Fault) -> bool:
    key = (fault.learner, TO_SYNCER if fault.kind == "lose_up" else TO_LEARNER)
    world.network.lose_next[key] = world.network.lose_next.get(key, 0) + fault.count
    return True


def _delay(world: World, fault: Fault) -> bool:
    delayed = world.network.delayed
    delayed[fault.learner] = delayed.get(fault.learner, 1.0) * fault.factor
    world.at(world.now + fault.for_ns, _undelay, (delayed, fault.learner, fault.factor))
    return True


def _undelay(delayed: dict[int, float], learner: int, factor: float) -> None:
    delayed[learner] /= factor


def _poison(world: World, fault: Fault) -> bool:
    process = world.learners.get(fault.learner)
    if process is None or not process.alive:
        return False
    process.poison.extend(["nan"] * fault.count)
    return True


def _kill_syncer(world: World, fault: Fault) -> bool:
    if not world.syncer.alive:
        return False
    world.kill_syncer()
    world.at(world.now + max(fault.for_ns, 1), world.restart_syncer)
    return True


def _stall_syncer(world: World, fault: Fault) -> bool:
    if not world.syncer.alive:
        return False
    process = world.syncer
    world.stop(process)
    world.at(world.now + fault.for_ns, world.resume, (process,))
    return True


_ACTS = {
    "kill": _kill,
    "stall": _stall,
    "slow": _slow,
    "cut": _cut,
    "cut_up": _cut,
    "cut_down": _cut,
    "lose_up": _lose,
    "lose_down": _lose,
    "delay": _delay,
    "nan": _poison,
    "kill_syncer": _kill_syncer,
    "stall_syncer": _stall_syncer,
}
