"""What each kind of fault does to a virtual run, and how it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.protocol import rosters
from workbench.protocol.acting import Acting
from workbench.protocol.events import AddAsked, RemoveAsked
from workbench.protocol.faults import LASTING_KINDS, NUMBER_KINDS, SCENARIO
from workbench.simulate import lives
from workbench.simulate.processes import VirtualProcess

if TYPE_CHECKING:
    from workbench.simulate.world import World


def act(world: World, acting: Acting) -> bool:
    """Let a fault act; whether its target was there."""
    fault = acting.fault
    if fault.kind in LASTING_KINDS:
        return _last(world, acting)
    if fault.kind in NUMBER_KINDS:
        return poison(world, acting)
    return _ACTS[fault.kind](world, acting)


def _last(world: World, acting: Acting) -> bool:
    fault = acting.fault
    if fault.kind == "slow":
        process = world.learners.get(fault.learner)
        if process is None or not process.alive:
            return False
    world.network.acting.begin(acting)
    if fault.for_ns:
        world.at(world.now + fault.for_ns, end, (world, acting))
    return True


def end(world: World, acting: Acting) -> None:
    """What lasted has lasted long enough."""
    if world.network.acting.end(acting.fault.learner, acting.number) is not None:
        world.striker.over(acting)


def poison(world: World, acting: Acting) -> bool:
    """The next contributions of a learner are spoilt; whether it was there."""
    process = world.learners.get(acting.fault.learner)
    if process is None or not process.alive:
        return False
    process.poisons.add(acting)
    return True


def _kill(world: World, acting: Acting) -> bool:
    fault = acting.fault
    process = world.learners.get(fault.learner)
    if process is None or not process.alive:
        return False
    lives.kill_learner(world, fault.learner, "SIGKILL" if fault.kind == "kill" else "exit 1")
    if fault.for_ns:
        world.at(world.now + fault.for_ns, start_again, (world, fault.learner, process.number + 1))
    return True


def start_again(world: World, learner: int, number: int) -> None:
    """Another process of a learner starts, unless it was removed, or somebody was faster."""
    process = world.learners.get(learner)
    if lives.is_wanted(world, learner) and (process is None or process.number < number):
        lives.start_learner(world, learner, number)


def _stall(world: World, acting: Acting) -> bool:
    process = world.learners.get(acting.fault.learner)
    return process is not None and _stop(world, process, acting)


def _stop(world: World, process: VirtualProcess, acting: Acting) -> bool:
    if not process.alive:
        return False
    lives.stop(world, process)
    world.at(world.now + acting.fault.for_ns, let_go_on, (world, process, acting))
    return True


def let_go_on(world: World, process: VirtualProcess, acting: Acting) -> None:
    """A stopped process goes on."""
    if process.alive:
        world.striker.over(acting)
    lives.resume(world, process)


def _kill_syncer(world: World, acting: Acting) -> bool:
    if not world.syncer.alive:
        return False
    lives.kill_syncer(world)
    world.at(world.now + max(acting.fault.for_ns, 1), lives.restart_syncer, (world,))
    return True


def _stall_syncer(world: World, acting: Acting) -> bool:
    return _stop(world, world.syncer, acting)


def _start_late(world: World, acting: Acting) -> bool:
    world.at(world.now + acting.fault.for_ns, start_again, (world, acting.fault.learner, 1))
    return True


def _add(world: World, acting: Acting) -> bool:
    there = world.syncer.alive and not world.syncer.machine.state.ending
    world.give(world.syncer, AddAsked(SCENARIO))
    return there


def _remove(world: World, acting: Acting) -> bool:
    there = world.syncer.alive and not rosters.why_not_remove(world.syncer.machine.state, acting.fault.learner)
    world.give(world.syncer, RemoveAsked(acting.fault.learner, SCENARIO))
    return there


_ACTS: dict[str, Callable[[World, Acting], bool]] = {
    "kill": _kill,
    "exit": _kill,
    "late": _start_late,
    "add": _add,
    "remove": _remove,
    "stall": _stall,
    "kill_syncer": _kill_syncer,
    "stall_syncer": _stall_syncer,
}
