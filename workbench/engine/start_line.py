"""The first learners of a run begin together, so that none runs ahead while others compile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.engine.processes import Managed
from workbench.engine.roster import REMOVED

if TYPE_CHECKING:
    from workbench.engine.fleet import Fleet


class StartLine:
    """Lets learners go that are ready: all of the first at once, later ones as they come.

    Attributes
    ----------
    away : bool
        The first have begun.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.away = False
        self._waiting = False

    def ready(self, managed: Managed) -> None:
        """A learner has compiled; after the start limit nobody waits for the others."""
        fleet = self._fleet
        managed.ready = True
        if self.away:
            self._go((managed,))
        elif not any(self._awaited(learner) for learner in fleet.learners):
            self._go(fleet.learners)
        elif not self._waiting:
            self._waiting = True
            fleet.timers.after(fleet.config.start_limit_s, self._go, fleet.learners)

    def _awaited(self, learner: Managed) -> bool:
        """Whether a learner is one of the first and not ready yet: one that is to start late, or has ended, is not."""
        late = learner.learner in self._fleet.striker.late
        return not (learner.ready or late or learner.state in ("ended", "failed", REMOVED) or not learner.number)

    def _go(self, learners: Sequence[Managed]) -> None:
        self.away = True
        for learner in learners:
            if learner.ready and learner.link is not None:
                learner.link.send({"go": True})
