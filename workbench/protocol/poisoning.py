"""Numeric faults that wait for a learner's next contributions, the same for processes of either clock."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from workbench.algorithms.poisons import AFTER_CODEC, Poison
from workbench.algorithms.seeds import sub_seed
from workbench.protocol.acting import Acting
from workbench.protocol.events import FaultActed

WEIGHTS = -1
"""Stands for the round in the record of a fault on the learner's own weights."""


class _Waiting(NamedTuple):
    """One contribution's fault; ``last`` of its count."""

    number: int
    poison: Poison
    persistent: bool
    last: bool


class Poisons:
    """What will act on the contributions and the weights of one learner process.

    A driver asks `on_capture` before it encodes a host copy and `on_weights` before a step, and gives the machine the
    event that it gets before it does anything else.

    Attributes
    ----------
    used_up : list of int
        Numbers of faults that have acted on their last contribution; the owner empties it.
    """

    def __init__(self) -> None:
        self._contributions: deque[_Waiting] = deque()
        self._weights: deque[tuple[int, Poison]] = deque()
        self.used_up: list[int] = []

    def add(self, acting: Acting) -> None:
        """A fault acts on the next contributions that no other waits for."""
        fault = acting.fault
        for nth in range(fault.count):
            seed = sub_seed(fault.seed, nth) & 0x7FFFFFFFFFFFFFFF
            persistent = fault.persistent and fault.kind not in AFTER_CODEC
            last = nth == fault.count - 1
            self._contributions.append(
                _Waiting(acting.number, Poison(fault.kind, fault.factor, seed), persistent, last)
            )

    def skip(self, count: int) -> None:
        """The first ``count`` contributions have been sent."""
        for _ in range(min(count, len(self._contributions))):
            self._contributions.popleft()

    def on_capture(self, fragment: int, round_: int) -> tuple[Poison, FaultActed] | None:
        """The fault on this contribution, None if there is none."""
        if not self._contributions:
            return None
        waiting = self._contributions.popleft()
        if waiting.persistent:
            self._weights.append((fragment, waiting.poison))
        if waiting.last:
            self.used_up.append(waiting.number)
        return waiting.poison, _event(waiting.poison, fragment, round_)

    def on_weights(self) -> tuple[int, Poison, FaultActed] | None:
        """The next fault on the learner's own fragment, None if there is none (any more)."""
        if not self._weights:
            return None
        fragment, poison = self._weights.popleft()
        return fragment, poison, _event(poison, fragment, WEIGHTS)


def _event(poison: Poison, fragment: int, round_: int) -> FaultActed:
    detail: dict[str, Any] = {"round": round_, "factor": poison.factor, "seed": poison.seed}
    return FaultActed(poison.kind, fragment, detail)
