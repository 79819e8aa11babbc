"""Learners that are added to a run of real processes, and removed from it: the syncer decides, the fleet follows."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from workbench.engine.processes import Managed
from workbench.protocol.records import label_of, process_of

if TYPE_CHECKING:
    from workbench.engine.fleet import Fleet

REMOVE_LIMIT_S = 5.0
"""For so long a removed learner may take to leave by itself."""
REMOVED = "removed"
"""State of a learner whose process is gone and will not come back."""

Answered = Callable[[dict[str, Any]], Any]


class Roster:
    """Asks the syncer for learners and has them started, or ended, when that is in the journal.

    Attributes
    ----------
    removed : set of int
        Learners of which no process is started any more.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.removed: set[int] = set()
        self._ticket = 0

    def add(self, who: str, answered: Answered) -> bool:
        """Ask for one more learner; whether there is a syncer to ask."""
        return self._ask({"add": True, "who": who}, answered)

    def remove(self, learner: int, who: str, answered: Answered) -> bool:
        """Ask for a learner to be removed; whether there is a syncer to ask."""
        return self._ask({"remove": learner, "who": who}, answered)

    def _ask(self, message: dict[str, Any], answered: Answered) -> bool:
        self._ticket -= 1  # those of requests are positive
        ticket = self._ticket

        def take(answer: dict[str, Any]) -> None:
            self.follow(answer["added"], answer["removed"])
            answered(answer)

        self.fleet.answers[ticket] = take
        if self.fleet.tell_syncer({**message, "ticket": ticket}):
            return True
        del self.fleet.answers[ticket]
        return False

    def follow(self, added: Sequence[int], removed: Sequence[int]) -> None:
        """Have the processes that the syncer says there are: also of what a lost answer did not tell."""
        fleet = self.fleet
        for learner in sorted(added):
            while len(fleet.learners) <= learner:
                m = len(fleet.learners)
                managed = Managed("learner", label_of(process_of(m)), process_of(m), m)
                fleet.learners.append(managed)
                fleet.start(managed)
        for learner in removed:
            if learner not in self.removed and learner < len(fleet.learners):
                self.removed.add(learner)
                self._leaves(fleet.learners[learner])

    def _leaves(self, managed: Managed) -> None:
        if managed.stops:
            self.fleet.nursery.signal(managed, signal.SIGKILL)
        elif managed.alive or managed.state == "starting":
            self.fleet.timers.after(REMOVE_LIMIT_S, self.fleet.nursery.signal, managed, signal.SIGKILL)
        else:
            managed.state = REMOVED
