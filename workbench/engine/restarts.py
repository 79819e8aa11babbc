"""What follows when a process of a run has ended: another start after a pause, or the end of the run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from workbench.engine.ending import LOST, WRONG
from workbench.engine.processes import FAILED_STARTS_MAX, Managed
from workbench.engine.roster import REMOVED
from workbench.protocol.records import Kind

if TYPE_CHECKING:
    from workbench.engine.fleet import Fleet

LINE_MAX = 200
"""Characters of a process's last line that its end is recorded with."""
UNFINISHED = "exit without a word"
"""How a process ended that left as if it were done, and is not."""


class Restarts:
    """Decides about processes that have ended."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def ended(self, managed: Managed, how: str) -> None:
        """A process has ended; ``how`` is its exit code or signal."""
        fleet = self.fleet
        managed.pid, managed.how = 0, how
        if managed.process >= 0:
            fleet.reports.supervisor(
                Kind.PROCESS_ENDED,
                peer=managed.process,
                value=float(managed.number),
                reason=how,
                detail={"line": managed.line[:LINE_MAX]} if managed.line else {},
            )
        if managed is fleet.preparer:
            if how != "exit 0":
                line = managed.line or f"the run could not be prepared: {how}"
                fleet.ending.lose(WRONG if how == "exit 2" and managed.line else LOST, line)
        elif managed is fleet.syncer:
            self._syncer(how)
        elif managed is fleet.recorder:
            self._recorder(how)
        elif managed is fleet.snapshots.keeper:
            fleet.snapshots.ended()
        elif fleet.ending.finished or fleet.over:
            managed.state = "ended"
        else:
            self._again(managed, how)
        fleet.ending.look()

    def unheard(self) -> None:
        """Nobody says any more who has ended: most died with the nursery, the others are gone when their link is."""
        fleet = self.fleet
        outliving = (fleet.syncer, fleet.recorder)
        for managed in (fleet.preparer, fleet.evaluator, *fleet.learners, *outliving):
            if managed not in outliving or managed.link is None or managed.link.closed:
                managed.pid, managed.state = 0, "ended"
        fleet.ending.look()

    def _again(self, managed: Managed, how: str) -> None:
        """Back off, then start once more; what never gets anywhere is left alone and shown."""
        if managed.learner in self.fleet.roster.removed:
            managed.state = REMOVED
            return
        if how == "exit 0" and managed is not self.fleet.evaluator:
            managed.state = "ended"
            return
        if not managed.steady:
            managed.failed_starts += 1
        if managed.failed_starts >= FAILED_STARTS_MAX:
            managed.state = "failed"
            return
        wait_s = managed.next_backoff_s()
        if managed.restart_at >= 0:
            wait_s = managed.restart_at - time.monotonic()
        elif managed.restart_at < -1.5:
            managed.state = "ended"  # a fault said: not again
            return
        managed.state = "waiting"
        self.fleet.timers.after(max(0.0, wait_s), self.fleet.start, managed)

    def _syncer(self, how: str) -> None:
        syncer, ending = self.fleet.syncer, self.fleet.ending
        self.fleet.answer_for_syncer()
        if syncer.state == "done":
            syncer.state = "ended"
        elif syncer.line:
            never_up = how == "exit 2" and syncer.number == self.fleet.resume.number(syncer.process) + 1
            ending.lose(WRONG if never_up else LOST, syncer.line)
        elif ending.finished:
            syncer.state = "ended"
        else:
            self._again(syncer, how if how != "exit 0" else UNFINISHED)
            if syncer.state == "failed":
                ending.lose(LOST, f"the syncer failed {FAILED_STARTS_MAX} times in a row ({how}); see its log")

    def _recorder(self, how: str) -> None:
        recorder, ending = self.fleet.recorder, self.fleet.ending
        refused = bool(ending.line) and how.startswith("exit")  # the run is lost, and its tape cannot be closed
        if recorder.state == "done" or ending.hurry or refused:
            recorder.state = "ended"
        else:
            self._again(recorder, how if how != "exit 0" else UNFINISHED)
