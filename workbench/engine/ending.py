"""How a run comes to its end, whichever way: in order, in a hurry, or lost."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from workbench.engine.processes import FAILED_STARTS_MAX

if TYPE_CHECKING:
    from workbench.engine.fleet import Fleet

END_LIMIT_S = 60.0
EVALUATIONS = 4
"""Times that the last evaluation took, for those that may still come at the end."""
HURRY_LIMIT_S = 4.0
LEARNERS_LIMIT_S = 3.0
LOST_LIMIT_S = 30.0
"""So long the tape of a run that is lost may take to be closed."""
DONE, AGAINST, WRONG, LOST = 0, 1, 2, 3


class Ending:
    """Lets the end of one thing begin the next: learners, last evaluation, journal, tape.

    Attributes
    ----------
    code, line : int, str
        Exit code of the run, and its last word.
    stopping : str
        Why the syncer was told to end the run, empty if it was not.
    finished : str
        Why the syncer has ended the run, empty while it goes on.
    hurry : bool
        There are seconds left, not minutes.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.code, self.line = DONE, ""
        self.stopping = ""
        self.finished = ""
        self.hurry = False
        self.closing = False

    def stop(self, reason: str, hurry: bool = False) -> None:
        """End the run in order; in a ``hurry`` within some seconds, whatever is left undone."""
        fleet = self.fleet
        if hurry and not self.hurry:
            self.hurry = True
            fleet.timers.after(HURRY_LIMIT_S, self._give_up)
        if self.stopping or self.finished:
            return
        self.stopping = reason
        if not hurry:
            fleet.timers.after(self._limit_s(), self._give_up)
        if fleet.syncer.number == 0:
            self.lose(LOST, "stopped before the run began")
        for learner in fleet.learners:
            if learner.stops:
                fleet.nursery.signal(learner, signal.SIGCONT)
        fleet.tell_syncer({"stop": reason})

    def _limit_s(self) -> float:
        """Seconds for an end in order: one evaluation may be in progress, and the last is to come."""
        return END_LIMIT_S + EVALUATIONS * float(self.fleet.evaluations.last.get("seconds", 0.0))

    def finish(self, reason: str) -> None:
        """The syncer has ended the run: learners leave, the last evaluation comes, then the journal is closed."""
        self.finished = reason
        for learner in self.fleet.learners:
            cut = self.fleet.striker.lasting.acting.is_cut(learner.learner)
            if learner.state == "starting" or learner.stops or cut:
                self.fleet.nursery.signal(learner, signal.SIGKILL)  # it has not joined, or cannot hear that it is over
        self.fleet.timers.after(LEARNERS_LIMIT_S, self._end_learners)
        self.fleet.timers.after(self._limit_s(), self._give_up)
        self.look()

    def lose(self, code: int, line: str) -> None:
        """The run cannot go on: what is journalled goes onto the tape, then everything ends."""
        if not self.line:
            self.code, self.line = code, line
        self.finished = self.finished or "lost"
        self.fleet.timers.after(LOST_LIMIT_S if self.fleet.run_id else 0.0, self._give_up)
        self._end_learners()
        self._close_journal()
        self.look()

    def look(self) -> None:
        """Go on to the next thing, if there is nothing left to wait for."""
        fleet = self.fleet
        if not self.finished or fleet.over:
            return
        if any(learner.alive for learner in fleet.learners):
            return
        if fleet.evaluations.pending and not (self.hurry or self.line):
            return
        if not self.closing:
            self._close_journal()
        if fleet.recorder.state == "ended" and not fleet.syncer.alive:
            fleet.over = True

    def _end_learners(self) -> None:
        for learner in self.fleet.learners:
            self.fleet.nursery.signal(learner, signal.SIGKILL)

    def _close_journal(self) -> None:
        """No further record: syncer and recorder close theirs, the evaluator leaves."""
        fleet = self.fleet
        self.closing = True
        fleet.reports.again()
        fleet.tell_syncer({"close": True})
        for managed in (fleet.evaluator, fleet.recorder, fleet.snapshots.keeper):
            if managed.link is not None:
                managed.link.send({"close": True})
        recorder = fleet.recorder
        if recorder.state == "waiting" and recorder.number:
            fleet.start(recorder)  # it died, and the tape is still to be closed
        elif not recorder.alive and recorder.state != "starting":
            recorder.state = "ended"

    def _give_up(self) -> None:
        """Something did not come to its end in time; whatever is left is killed."""
        if self.fleet.over:
            return
        if not self.line and not self.hurry:
            self.code, self.line = LOST, f"the run did not end within {self._limit_s():.0f} s of being told to"
        self.fleet.over = True

    def outcome(self) -> tuple[int, str]:
        """Exit code and last line."""
        failed = [learner.label for learner in self.fleet.learners if learner.state == "failed"]
        if self.code == DONE and failed:
            return AGAINST, f"{', '.join(failed)} failed {FAILED_STARTS_MAX} times in a row without one step"
        return self.code, self.line
