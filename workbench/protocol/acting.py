"""Faults that last, and what they do to a learner's messages and steps while they act, in whichever time."""

from __future__ import annotations

from typing import NamedTuple

from workbench.algorithms import draws
from workbench.algorithms.seeds import sub_seed
from workbench.protocol.faults import Fault

TO_SYNCER = 0
TO_LEARNER = 1
"""Directions of a link."""

_CUTS = {"cut": (TO_SYNCER, TO_LEARNER), "cut_up": (TO_SYNCER,), "cut_down": (TO_LEARNER,)}
_LOSES = {"lose_up": TO_SYNCER, "lose_down": TO_LEARNER}
_LOSS, _JITTER = 0, 1


class Acting(NamedTuple):
    """A fault at work; ``number`` is its own in the run."""

    number: int
    fault: Fault


class ActingFaults:
    """The faults of all learners that act now.

    Attributes
    ----------
    used_up : list of int
        Numbers of faults that acted on their last message; the owner empties it.
    """

    def __init__(self) -> None:
        self._acting: dict[int, list[Acting]] = {}
        self._left: dict[int, int] = {}
        self._seen: dict[tuple[int, int], int] = {}
        self.used_up: list[int] = []

    @property
    def any(self) -> bool:
        """Whether a fault acts on somebody."""
        return bool(self._acting)

    @property
    def learners(self) -> list[int]:
        """On whom a fault acts."""
        return sorted(self._acting)

    def of(self, learner: int) -> list[Acting]:
        """What acts on a learner."""
        return list(self._acting.get(learner, ()))

    def begin(self, acting: Acting) -> None:
        """A fault acts from now on."""
        self.set(acting.fault.learner, [*self.of(acting.fault.learner), acting])

    def end(self, learner: int, number: int) -> Acting | None:
        """Let a fault act no longer; None if it did not."""
        found = next((a for a in self.of(learner) if a.number == number), None)
        if found is not None:
            self.set(learner, [a for a in self.of(learner) if a.number != number])
        return found

    def set(self, learner: int, acting: list[Acting]) -> None:
        """Let these faults act on a learner and no other; what is left of a count stays."""
        for a in self._acting.get(learner, ()):
            if all(a.number != other.number for other in acting):
                self._left.pop(a.number, None)
        if acting:
            self._acting[learner] = list(acting)
        else:
            self._acting.pop(learner, None)
        for a in acting:
            if a.fault.kind in _LOSES:
                self._left.setdefault(a.number, a.fault.count)

    def slow_factor(self, learner: int) -> float:
        """How many times as long steps take."""
        factor = 1.0
        for a in self._acting.get(learner, ()):
            if a.fault.kind == "slow":
                factor *= a.fault.factor
        return factor

    def is_cut(self, learner: int, direction: int | None = None) -> bool:
        """Whether messages in a direction are lost, in either if none is named."""
        wanted = (TO_SYNCER, TO_LEARNER) if direction is None else (direction,)
        return any(d in wanted for a in self._acting.get(learner, ()) for d in _CUTS.get(a.fault.kind, ()))

    def takes(self, learner: int, direction: int) -> bool:
        """Whether the next message in a direction is lost; to be asked once for each."""
        acting = self._acting.get(learner)
        if not acting:
            return False
        nth = self._seen[learner, direction] = self._seen.get((learner, direction), 0) + 1
        if self.is_cut(learner, direction):
            return True
        for a in acting:
            if _LOSES.get(a.fault.kind) == direction and self._left[a.number] > 0:
                self._left[a.number] -= 1
                if not self._left[a.number]:
                    self.used_up.append(a.number)
                return True
        return any(a.fault.kind == "loss" and self._drawn(a, _LOSS, direction, nth) < a.fault.share for a in acting)

    def added_ns(self, learner: int, direction: int) -> int:
        """How much longer the message that was last asked about is on its way [ns]."""
        nth = self._seen.get((learner, direction), 0)
        added = 0
        for a in self._acting.get(learner, ()):
            if a.fault.kind == "delay":
                off = 2.0 * self._drawn(a, _JITTER, direction, nth) - 1.0
                added += max(0, a.fault.delay_ns + int(off * a.fault.jitter_ns))
        return added

    def bytes_per_s(self, learner: int) -> float:
        """How fast fragments travel, 0 if that is not limited."""
        limits = [a.fault.bytes_per_s for a in self._acting.get(learner, ()) if a.fault.kind == "bandwidth"]
        return min(limits, default=0.0)

    @staticmethod
    def _drawn(acting: Acting, what: int, direction: int, nth: int) -> float:
        return draws.uniform(acting.fault.seed, what, direction, nth)


def seeded(fault: Fault, number: int, run_seed: int) -> int:
    """Seed of what a fault draws: its own, or one derived from the run's and its number."""
    chosen = fault.seed if fault.seed >= 0 else sub_seed(run_seed, "fault", number)
    return chosen & 0x7FFFFFFFFFFFFFFF
