"""What happens again in a counterfactual because nobody in it decides about it."""

from __future__ import annotations

from typing import Any

from workbench.protocol import events as ev
from workbench.protocol.faults import SCENARIO
from workbench.replay.counterfactual.plan import Ended
from workbench.simulate import lives
from workbench.simulate.world import World

EXOGENOUS = (ev.SettingsAsked, ev.QuarantineAsked, ev.AddAsked, ev.RemoveAsked, ev.StopAsked)
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
