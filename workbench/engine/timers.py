"""Things to be done later, in order of time."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import Any


class Timers:
    """A heap of calls on the monotonic clock."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[..., Any], tuple[Any, ...]]] = []
        self._count = 0

    def after(self, seconds: float, what: Callable[..., Any], *arguments: Any) -> None:
        """Call ``what(*arguments)`` in so many seconds."""
        self._count += 1
        heapq.heappush(self._heap, (time.monotonic() + seconds, self._count, what, arguments))

    def run_due(self) -> None:
        """Make the calls whose time has come."""
        while self._heap and self._heap[0][0] <= time.monotonic():
            _, _, what, arguments = heapq.heappop(self._heap)
            what(*arguments)

    def wait_s(self, most: float) -> float:
        """Seconds until the next call, at most ``most``."""
        if not self._heap:
            return most
        return min(most, max(0.0, self._heap[0][0] - time.monotonic()))


def wait_ms(now: int, most_ms: int, *moments: int) -> int:
    """Whole milliseconds from ``now`` [ns] to the first of some moments [ns], of which negative ones never come."""
    until = min((moment - now for moment in moments if moment >= 0), default=most_ms * 1_000_000)
    return max(0, min(most_ms, -(-until // 1_000_000)))
