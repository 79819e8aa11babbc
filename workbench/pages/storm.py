"""A storm on a run that goes on, for as long as a page wants it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from workbench.protocol.live_storm import KINDS, RATE_MAX, Storm, Strike

TICK_S = 0.05


class Stormer:
    """Lets a storm strike while its rate is above 0, in a thread of its own that ends when it is 0 again.

    Parameters
    ----------
    storm : Storm
    strike : function (Strike) -> bool
        Waits for the run's answer: whether it struck somebody.
    going : function
        Whether the run goes on.

    Attributes
    ----------
    struck, missed : int
        Strikes so far, and those that found nobody.
    """

    def __init__(self, storm: Storm, strike: Callable[[Strike], bool], going: Callable[[], bool]) -> None:
        self.storm, self._strike, self._going = storm, strike, going
        self.struck = self.missed = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def turn(self, rate: float, kinds: tuple[str, ...]) -> None:
        """Change rate and kinds; 0 or no kind ends the storm."""
        allowed = tuple(kind for kind in kinds if kind in KINDS)
        with self._lock:
            self.storm.kinds = allowed or self.storm.kinds
            self.storm.rate = min(max(rate, 0.0), RATE_MAX) if allowed else 0.0
            if self.storm.rate > 0 and self._thread is None:
                self._thread = threading.Thread(target=self._blow, name="storm", daemon=True)
                self._thread.start()

    def aim(self, learners: tuple[int, ...]) -> None:
        """Strike these from now on: somebody was added, or has left."""
        with self._lock:
            self.storm.learners = learners

    def _blow(self) -> None:
        last_s = time.monotonic()
        while True:
            with self._lock:
                if self.storm.rate <= 0 or not self._going():
                    self.storm.rate, self._thread = 0.0, None
                    return
                now_s = time.monotonic()
                strikes, last_s = self.storm.advance(now_s - last_s), now_s
            for strike in strikes:
                if self._strike(strike):
                    self.struck += 1
                else:
                    self.missed += 1
            time.sleep(TICK_S)
