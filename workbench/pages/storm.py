"""A storm of faults at random on a run that goes on: a Poisson process whose rate may change at any moment."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

KINDS = ("kill", "stall", "slow", "cut", "delay", "loss", "nan", "flip")
"""Kinds that a storm may be made of, with their usual numbers."""
RATE_MAX = 60
"""Faults per minute."""
TICK_S = 0.05


class Strike(NamedTuple):
    """One fault of a storm."""

    kind: str
    learner: int


class Storm:
    """Parameters
    ----------
    learners : int
        Whom it may strike.
    seed : int
        Of what is drawn: kinds, targets, and how much the next one takes.

    Attributes
    ----------
    rate : float
        Faults per minute, over all learners; 0: none.
    kinds : tuple of str
        Of `KINDS`.
    count : int
        Strikes so far.
    """

    def __init__(self, learners: int, seed: int = 0) -> None:
        self.rate, self.count = 0.0, 0
        self.kinds: tuple[str, ...] = ("kill",)
        self._learners = learners
        self._random = random.Random(seed)
        self._left = self._random.expovariate(1.0)

    def advance(self, passed_s: float) -> list[Strike]:
        """What strikes in the next seconds, at the rate that holds now."""
        found: list[Strike] = []
        self._left -= self.rate / 60.0 * passed_s
        while self._left <= 0.0:
            found.append(Strike(self._random.choice(self.kinds), self._random.randrange(self._learners)))
            self._left += self._random.expovariate(1.0)
        self.count += len(found)
        return found


class Stormer:
    """Lets a storm strike while its rate is above 0, in a thread of its own that ends when it is 0 again.

    Parameters
    ----------
    storm : Storm
    strike : function (Strike)
        Waits for the run's answer.
    going : function
        Whether the run goes on.
    """

    def __init__(self, storm: Storm, strike: Callable[[Strike], None], going: Callable[[], bool]) -> None:
        self.storm, self._strike, self._going = storm, strike, going
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
                self._strike(strike)
            time.sleep(TICK_S)
