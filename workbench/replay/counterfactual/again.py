"""What happens again in a counterfactual because nobody in it decides about it."""

from __future__ import annotations

from itertools import islice
from typing import Any

from workbench.protocol import events as ev
from workbench.protocol import restart
from workbench.protocol.faults import SCENARIO
from workbench.protocol.records import Kind
from workbench.replay.counterfactual.durations import KeyedTimes
from workbench.replay.counterfactual.ends import Ended
from workbench.replay.counterfactual.parent import Loss, Parent
from workbench.simulate import lives, outages
from workbench.simulate.world import World

EXOGENOUS = (
    ev.SettingsAsked, ev.QuarantineAsked, ev.AddAsked, ev.RemoveAsked, ev.SnapshotAsked, ev.StopAsked,
)  # fmt: skip
"""Inputs that somebody outside gave: they come again at their time."""


def comes_again(event: Any) -> bool:
    """Whether an input comes from somebody outside, and not from a fault, which is planned anew."""
    return isinstance(event, EXOGENOUS) and getattr(event, "who", "") != SCENARIO


def ask_again(world: World, event: Any) -> None:
    """Somebody asks the syncer for what was asked then; a dead one hears nothing."""
    world.give(world.syncer, event)


def end_again(world: World, end: Ended) -> None:
    """A process ends by itself as it did, and the next is started."""
    process = world.learners.get(end.learner)
    if process is None or not process.alive:
        return
    lives.kill_learner(world, end.learner, end.how)
    if end.again_ns >= 0:
        world.at(max(world.now, end.again_ns), lives.start_learner, (world, end.learner, process.number + 1))


def lose_again(world: World) -> None:
    """Every process is gone, as then."""
    outages.lose_everything(world)


def resume_again(world: World, loss: Loss, times: KeyedTimes) -> None:
    """Somebody goes on with the run as then: back at that snapshot, or at the newest, or where it was."""
    cut = None
    if loss.cut is not None:
        cut = restart.cut_of(world.records, loss.snapshot) or restart.cut_of(world.records)
    if cut is not None:
        times.epoch += 1
        times.sent.clear()
    outages.resume_run(world, cut["snapshot"] if cut is not None else None)


def come_again(world: World, parent: Parent, times: KeyedTimes, after_ns: int, first: int = 0) -> None:
    """What others did to a run comes again at its time, from an input on: controls, losses of everything, resumes."""
    world.outlasting = (ask_again, end_again, lose_again, resume_again)
    for number in range(first, len(parent.inputs)):
        item, event = parent.inputs[number], parent.decoded(number)
        if comes_again(event) and item.time_ns > after_ns and not _is_idle(parent, number, event):
            world.at(item.time_ns, ask_again, (world, event))
    for loss in parent.losses:
        if loss.again_ns > after_ns:
            world.at(loss.at_ns + 1, lose_again, (world,))
            world.at(loss.again_ns, resume_again, (world, loss, times))


def _is_idle(parent: Parent, number: int, event: Any) -> bool:
    """Whether somebody asked for the end of a run that was ending anyway: the answer may not be there yet."""
    if not isinstance(event, ev.StopAsked):
        return False
    later = islice(parent.records, parent.positions[number], None)
    return next((r.reason for r in later if r.kind == Kind.RUN_ENDED), event.reason) != event.reason


def goes_on(world: World) -> bool:
    """Whether a run that has ended is resumed: one with all of its merges only to go back to a snapshot."""
    coming = (arguments[1] for _, _, what, arguments in world.heap if what is resume_again)
    return any(world.finished != "rounds" or loss.cut is not None for loss in coming)
