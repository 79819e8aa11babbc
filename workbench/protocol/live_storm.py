"""A storm of faults at random whose rate may change at any moment: a Poisson process over all learners of a run."""

from __future__ import annotations

from typing import NamedTuple

from workbench.algorithms import draws
from workbench.algorithms.seeds import sub_seed

KINDS = ("kill", "stall", "slow", "cut", "delay", "loss", "nan", "flip")
"""Kinds that it may be made of, with their usual numbers."""
RATE_MAX = 60
"""Faults per minute."""


class Strike(NamedTuple):
    """One fault of a storm."""

    kind: str
    learner: int


class Storm:
    """Parameters
    ----------
    learners : int
        At its beginning: so many, from 0 on.
    seed : int
        Of what is drawn: kinds, targets, and how much the next one takes.

    Attributes
    ----------
    rate : float
        Faults per minute, over all learners; 0: none.
    kinds : tuple of str
        Of `KINDS`.
    learners : tuple of int
        Whom it may strike; without any it is calm.
    count : int
        Strikes so far.
    """

    def __init__(self, learners: int, seed: int = 0) -> None:
        self.rate, self.count = 0.0, 0
        self.kinds: tuple[str, ...] = ("kill",)
        self.learners: tuple[int, ...] = tuple(range(learners))
        self._seed = sub_seed(seed, "live storm")
        self._left = self._interval()

    def advance(self, passed_s: float) -> list[Strike]:
        """What strikes in the next seconds, at the rate that holds now."""
        found: list[Strike] = []
        if not self.learners:
            return found
        self._left -= self.rate / 60.0 * passed_s
        while self._left <= 0.0:
            kind, learner = draws.uniform_pair(self._seed, self.count, 1)
            struck = self.learners[int(learner * len(self.learners))]
            found.append(Strike(self.kinds[int(kind * len(self.kinds))], struck))
            self.count += 1
            self._left += self._interval()
        return found

    def _interval(self) -> float:
        """How much the next one takes, in mean intervals."""
        return draws.exponential(1.0, self._seed, self.count, 0)
