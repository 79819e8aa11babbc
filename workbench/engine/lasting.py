"""Faults that last on real processes: both ends of a link are told of them, and told again whenever one starts anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.engine.link_faults import told
from workbench.engine.processes import Managed
from workbench.protocol.acting import Acting, ActingFaults
from workbench.protocol.faults import ended
from workbench.protocol.records import Kind

if TYPE_CHECKING:
    from workbench.engine.fleet import Fleet


class Lasting:
    """What acts on the learners of a run now; the supervisor's book."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.acting = ActingFaults()
        self._began: dict[int, int] = {}
        self._counted: dict[int, Acting] = {}

    def begin(self, acting: Acting) -> None:
        """Let a fault act until its time is over, it is used up, or somebody heals its learner."""
        self.acting.begin(acting)
        self._began[acting.number] = self.fleet.now()
        self._tell(acting.fault.learner)
        if acting.fault.for_ns:
            self.fleet.timers.after(acting.fault.for_ns / 1e9, self.end, acting.fault.learner, acting.number, "over")

    def take_up(self, acting: Acting, began_ns: int) -> None:
        """Let a fault act on that had begun before the run was lost; one whose time is up meanwhile is over now."""
        self.acting.begin(acting)
        self._began[acting.number] = began_ns
        if acting.fault.for_ns:
            left_ns = max(0, began_ns + acting.fault.for_ns - self.fleet.now())
            self.fleet.timers.after(left_ns / 1e9, self.end, acting.fault.learner, acting.number, "over")

    def end(self, learner: int, number: int, why: str) -> None:
        """Let a fault act no longer; nothing, if it did not."""
        found = self.acting.end(learner, number)
        if found is not None:
            self._tell(learner)
            self._record(found, why)

    def heal(self, learner: int) -> int:
        """End all that acts on a learner; how many faults that were."""
        found = self.acting.of(learner)
        self.acting.set(learner, [])
        self._tell(learner)
        for acting in found:
            self._record(acting, "healed")
        return len(found)

    def counted(self, acting: Acting) -> None:
        """A fault waits in a learner's process for its contributions."""
        self._counted[acting.number] = acting
        self._began[acting.number] = self.fleet.now()

    def used_up(self, number: int) -> None:
        """A process says that a fault has acted on its last message."""
        counted = self._counted.pop(number, None)
        if counted is not None:
            self._record(counted, "used_up")
        for managed in self.fleet.learners:
            self.end(managed.learner, number, "used_up")

    def known_to(self, managed: Managed) -> list[dict[str, Any]]:
        """What a process that starts now is told."""
        if managed is self.fleet.syncer:
            learners = self.acting.learners
        else:
            learners = [managed.learner] if managed.learner >= 0 else []
        return [told(learner, self.acting.of(learner)) for learner in learners]

    def _tell(self, learner: int) -> None:
        message = {"acting": told(learner, self.acting.of(learner))}
        self.fleet.tell_syncer(message)
        link = self.fleet.learners[learner].link if learner < len(self.fleet.learners) else None
        if link is not None:
            link.send(message)

    def _record(self, acting: Acting, why: str) -> None:
        began, now = self._began.pop(acting.number), self.fleet.now()
        self.fleet.reports.supervisor(Kind.FAULT_ENDED, **ended(acting.fault, acting.number, began, now, why))
