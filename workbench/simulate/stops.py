"""Stops in order of a run that is explored: it ends as its last merge would end it, and is resumed later."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.protocol.events import StopAsked
from workbench.simulate.durations import SECOND
from workbench.simulate.outages import lose_everything
from workbench.simulate.schedule import Loss
from workbench.simulate.world import World

STOPPED = "stopped"
"""Reason of a run that somebody stopped."""

AGAIN_NS = SECOND // 20
"""So often a syncer is told to end the run, as its supervisor does, until one that is there has heard it."""


class Stops:
    """Asks a world to stop, and lets it go on after its end.

    Parameters
    ----------
    world : World
    losses : sequence of Loss
        Those that are ``ordered`` count.
    go_on : callable
        Takes (world, back): the resume.
    """

    def __init__(self, world: World, losses: Sequence[Loss], go_on: Callable[[World, bool], None]) -> None:
        self._go_on = go_on
        self._to_come = sorted((loss for loss in losses if loss.ordered), key=lambda loss: loss.at_ns)
        if self._to_come:
            world.after_end = self.ended
            world.at(self._to_come[0].at_ns, self.ask, (world,))

    def ask(self, world: World) -> None:
        """Have the syncer end the run; asked again, since it may be down or be killed before it has."""
        syncer = world.syncer
        if syncer.alive and syncer.started and not syncer.stops and not syncer.machine.state.ending:
            world.give(syncer, StopAsked(STOPPED))
        if not world.finished:
            world.at(world.now + AGAIN_NS, self.ask, (world,))

    def ended(self, world: World) -> None:
        """The run has ended: what it left is gone, and somebody resumes it."""
        if world.finished != STOPPED:
            return
        loss = self._to_come.pop(0)
        world.report(world.supervisor)
        world.heap = [event for event in world.heap if event[2] != self.ask]
        lose_everything(world)
        world.finished = ""
        world.at(world.now + loss.down_ns, self._go_on, (world, loss.back))
        if self._to_come:
            world.at(max(self._to_come[0].at_ns, world.now), self.ask, (world,))
