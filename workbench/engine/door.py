"""What is turned away at a syncer's door: counted by reason, and said now and then in its log."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping

import zmq

HANDSHAKE_EVENTS = (
    zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)
SAY_EVERY_S = 10.0
LAST_CHARACTERS_MAX = 300

MEANINGS = {
    "key": "keys that are not on the list",
    "handshake": "connections without a handshake (no client of ZeroMQ, or keys on one side only)",
    "stranger": "frames without a greeting",
    "garbled": "frames that are none",
    "version": "frames of another version",
    "differs": "learners that mean another run",
    "run": "learners of another run",
    "manifest": "learners of another model",
    "learner": "learners that there are not, or messages in another's name",
    "huge": "frames that are too large",
    "size": "payloads of a wrong size",
}
"""Reasons whose word alone says too little."""

SAID = frozenset({"key", "differs", "run", "manifest", "learner", "hello", "many"})
"""Reasons that come with a sentence."""


class Handshakes:
    """Follows the connections of one socket: which ended before their handshake was done.

    ZeroMQ does not say whose handshake was done: it is taken to be that of the newest connection, since who means to
    take part is done within milliseconds.
    """

    def __init__(self) -> None:
        self._begun: list[int] = []
        self._by_key = 0

    def take(self, events: Iterable[tuple[int, int]]) -> tuple[bool, int]:
        """Whether some connection ended, and how many of them never got through their handshake.

        Those that were turned away for their key are not counted: the list of keys counts them.
        """
        ended, failed = False, 0
        for event, value in events:
            if event == zmq.EVENT_ACCEPTED:
                self._begun.append(value)
            elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                del self._begun[-1:]
            elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                self._by_key += 1
            else:
                ended = True
                failed += self._ended(value)
        return ended, failed

    def _ended(self, descriptor: int) -> int:
        if descriptor not in self._begun:
            return 0
        self._begun.remove(descriptor)
        if self._by_key:
            self._by_key -= 1
            return 0
        return 1


class DoorLog:
    """Says what was turned away: the first at once, then one line in `SAY_EVERY_S`, whatever comes."""

    def __init__(self) -> None:
        self._said: Counter[str] = Counter()
        self._next_at = 0.0

    def line(self, refused: Mapping[str, int], last: str = "", now: float | None = None) -> str:
        """One line for what was refused since the former, the ``last`` of it as it was said; empty if none is due."""
        now = time.monotonic() if now is None else now
        if now < self._next_at:
            return ""
        new = {reason: count - self._said[reason] for reason, count in refused.items() if count > self._said[reason]}
        if not new:
            return ""
        self._next_at = now + SAY_EVERY_S
        self._said = Counter(refused)
        counts = ", ".join(f"{count} {MEANINGS.get(reason, reason)}" for reason, count in sorted(new.items()))
        said = f"; the last: {last:.{LAST_CHARACTERS_MAX}}" if SAID & new.keys() and last else ""
        return f"refused: {counts}{said}"
