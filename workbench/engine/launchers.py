"""Where the learners of a run come from: from this machine's nursery, or by hand from any machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from workbench.engine.placing import environment_of
from workbench.engine.processes import Managed
from workbench.engine.roster import REMOVED
from workbench.training.threads import thread_variables

if TYPE_CHECKING:
    from workbench.engine.fleet import Fleet

CONNECTED, LEFT, SILENT, LOST, NEVER_SEEN = "connected", "left", "silent", "lost", "never seen"
"""States of a learner that was started by hand."""
_BY_LOSS = {"left": LEFT, "ended": LEFT, "heartbeat": SILENT, REMOVED: REMOVED}
"""What became of one that is not connected, by the reason for which the syncer lost it; of the others: lost."""


class Launcher(Protocol):
    """Starts learners, or waits for them."""

    def start(self, learner: Managed) -> None:
        """A learner is wanted."""

    def seen(self, learner: Managed, facts: dict[str, Any]) -> None:
        """The syncer says how it sees the learner."""

    def why_not(self, learner: Managed) -> str:
        """Why nothing can be done to the learner from here; empty if something can."""

    def environment(self, role: str) -> dict[str, str]:
        """Variables for a process of this role on this machine."""


class Local:
    """Processes of this machine, started again when they die."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def start(self, learner: Managed) -> None:
        """Have the nursery fork it."""
        self._fleet.spawn(learner)

    def seen(self, learner: Managed, facts: dict[str, Any]) -> None:
        """One that has stepped has got somewhere."""
        if facts["stepped"] == learner.number and learner.alive:
            learner.got_somewhere()

    def why_not(self, learner: Managed) -> str:
        """Nothing stands against it."""
        return ""

    def environment(self, role: str) -> dict[str, str]:
        """Threads: a learner's share of the cores."""
        return environment_of(self._fleet.config, role)


class ByHand:
    """Processes that people start, on whichever machine; nobody here can end or restart them."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def start(self, learner: Managed) -> None:
        """Wait for it."""
        if learner.state == "waiting":
            learner.state = NEVER_SEEN

    def seen(self, learner: Managed, facts: dict[str, Any]) -> None:
        """Connected or not, and how its last connection ended, is all that is known of it."""
        learner.state = CONNECTED if facts["connected"] else _BY_LOSS.get(facts["lost"], LOST)
        learner.number = facts["starts"]

    def why_not(self, learner: Managed) -> str:
        """It is out of reach."""
        where = self._fleet.status.get("learners", {}).get(str(learner.learner), {}).get("where")
        return f"{learner.label} is started by hand" + (f" (last on {where}): act on it there" if where else "")

    def environment(self, role: str) -> dict[str, str]:
        """Threads as configured: no learner shares this machine's cores, as far as anybody knows."""
        threads = self._fleet.config.machine.threads
        return thread_variables(threads) if role in ("prepare", "evaluator") else {}
