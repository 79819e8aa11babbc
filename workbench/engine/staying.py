"""How long a learner that was started by hand takes part: until it is told to leave, interrupted, or left alone."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from workbench.protocol import events as ev
from workbench.protocol.records import label_of, process_of
from workbench.protocol.rosters import REMOVED

if TYPE_CHECKING:
    from workbench.engine.finding import Limit
    from workbench.engine.learner_driver import LearnerDriver

DONE, LOST = 0, 3
SAY_EVERY_S = 10.0
AWAY_FOR_S = 2.0
"""A syncer that is back sooner was restarted: not worth a line."""
SUPERSEDED = "superseded"
LINGER_MS = 5000
"""For so long, at most, the last words may take to get through."""


class Staying:
    """The life of a driver in the foreground.

    Parameters
    ----------
    driver : LearnerDriver
    address : str
        Of the syncer, for messages.
    first_limit : Limit
        How long without a syncer before the first WELCOME.
    patience_s : float
        The same after it.
    """

    def __init__(self, driver: LearnerDriver, address: str, first_limit: Limit, patience_s: float) -> None:
        self.driver, self.address = driver, address
        self.first_limit, self.patience_s = first_limit, patience_s
        self.state = driver.machine.state
        self.label = label_of(process_of(self.state.learner))
        self.signal = 0
        self.asked = False
        self.incarnation = 0
        self.since = self.said = time.monotonic()
        self.away = True

    def run(self) -> tuple[int, str]:
        """Turn until the machine leaves; returns exit code and last line."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._interrupt)
        self.driver.begin()
        try:
            while not self.driver.left:
                self.driver.turn()
                if self.signal and not self.asked:
                    self.asked = True
                    self._say("finishes its step and leaves; once more ends it at once")
                    self.driver.give(ev.LeaveAsked("interrupted"))
                line = self._look(time.monotonic())
                if line:
                    return LOST, line
            self.driver.turn()  # what is still to be said
        finally:
            self.driver.wire.close(LINGER_MS if self.driver.left and self.state.welcomed else 0)
        return self._outcome()

    def _interrupt(self, number: int, frame: Any) -> None:
        if self.signal:
            os._exit(128 + number)
        self.signal = number
        self.driver.wire.wake()

    def _look(self, now: float) -> str:
        """Say what changed; a line if there has been no syncer for too long."""
        if self.state.welcomed:
            if self.state.incarnation != self.incarnation:
                self._welcomed(now)
            self.away = False
            return ""
        if not self.away:
            self.away, self.since, self.said = True, now, now - SAY_EVERY_S + AWAY_FOR_S
        gone_s, why = now - self.since, self.driver.wire.refusal
        reason = f" ({why})" if why else ""
        if gone_s >= self._limit_s():
            return self._alone(gone_s, reason)
        if now - self.said >= SAY_EVERY_S:
            self.said = now
            doing = f"trains on, at own step {self.state.n}" if self.incarnation else "waits"
            self._say(f"has had no syncer at {self.address} for {gone_s:.0f} s{reason}: it {doing}")
        return ""

    def _limit_s(self) -> float:
        return self.patience_s if self.incarnation else self.first_limit.seconds

    def _alone(self, gone_s: float, reason: str) -> str:
        if not self.incarnation:
            return (
                f"found no syncer at {self.address} within {self.first_limit}{reason}: its run may be over; start "
                "the syncer first, or give its address with --connect"
            )
        return (
            f"has had no syncer at {self.address} for {gone_s:.0f} s{reason}, the limit is --patience "
            f"{self.patience_s:g}; own steps up to {self.state.n} were made, those after the syncer went are lost"
        )

    def _welcomed(self, now: float) -> None:
        again = " again" if self.incarnation else ""
        self.incarnation = self.state.incarnation
        self._say(f"takes part{again}: incarnation {self.incarnation}, after own step {self.state.n}")

    def _outcome(self) -> tuple[int, str]:
        if self.signal:
            return 128 + self.signal, f"left after own step {self.state.n}; the run goes on without it"
        if self.driver.left == REMOVED:
            return DONE, f"was removed from the run, after own step {self.state.n}"
        if self.driver.left == SUPERSEDED:
            return LOST, f"another process, started later, is {self.label} now; this one has left the run"
        return DONE, f"the run is over ({self.driver.left}), after own step {self.state.n}"

    def _say(self, what: str) -> None:
        print(f"{self.label} {what}", file=sys.stderr, flush=True)
