"""Faults of links between real processes: each end filters what comes in, control, bulk and descriptors alike.

Every link has the syncer at one end, so that the two filters see all messages.  What is filtered is keyed by the
learner, not by the connection: one that comes back while its link is cut stays cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any, NamedTuple

import msgspec

from workbench.protocol.acting import Acting, ActingFaults
from workbench.protocol.faults import Fault
from workbench.protocol.messages import (
    BULK,
    CONTROL,
    Fragment,
    Mark,
    Marker,
    PeerState,
    Refused,
    StateCopy,
    Update,
)

HELD_MAX = 256
"""Fragments of one learner that may wait at the end of a narrow link; a sender would keep no more either."""


class Told(msgspec.Struct, frozen=True):
    """What a supervisor tells of the faults that act on a learner now."""

    learner: int
    acting: list[tuple[int, Fault]]


def told(learner: int, acting: Iterable[Acting]) -> dict[str, Any]:
    """The table that goes over a link to a process."""
    found: dict[str, Any] = msgspec.to_builtins(Told(learner, [(a.number, a.fault) for a in acting]))
    return found


def acting_of(table: dict[str, Any]) -> list[Acting]:
    """The faults that were `told`."""
    return [Acting(number, fault) for number, fault in msgspec.convert(table, Told).acting]


class _Held(NamedTuple):
    """A message that comes later."""

    at: int
    order: int
    connection: int
    learner: int
    message: Any


class LinkFilter:
    """Lets messages through, loses them, or holds them up, as the faults of their links have it.

    Parameters
    ----------
    direction : int
        `TO_SYNCER` or `TO_LEARNER`: of what comes in here.
    wire : SyncerWire or LearnerWire
        Holds the payloads.
    learner : int
        Whose end this is; -1 at the syncer, where every message says who sent it.

    Attributes
    ----------
    faults : ActingFaults
    """

    def __init__(self, direction: int, wire: Any, learner: int = -1) -> None:
        self.direction, self.wire, self.learner = direction, wire, learner
        self.faults = ActingFaults()
        self._held: list[_Held] = []
        self._order = 0
        self._last: dict[tuple[int, int], int] = {}
        self._free: dict[int, int] = {}

    def take(self, table: dict[str, Any]) -> None:
        """What acts on a learner from now on, as the supervisor tells it."""
        self.faults.set(table["learner"], acting_of(table))

    def slow_factor(self) -> float:
        """How many times as long this learner's steps take now."""
        return self.faults.slow_factor(self.learner)

    def is_cut(self) -> bool:
        """Whether this learner cannot connect now."""
        return self.faults.is_cut(self.learner)

    def passing(self, now: int, came: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
        """What comes in at ``now`` [ns]: of the messages that came those that are neither lost nor late."""
        if not (self._held or self.faults.any):
            return came
        for connection, message in came:
            self._one(now, connection, message)
        passed = []
        while self._held and self._held[0].at <= now:
            held = heappop(self._held)
            passed.append((held.connection, held.message))
        if not self._held:
            self._last.clear()
        return passed

    @property
    def next_at(self) -> int:
        """When the next message that is held comes in [ns]; -1 if there is none."""
        return self._held[0].at if self._held else -1

    def used_up(self) -> list[int]:
        """Numbers of the faults that have acted on their last message since the last call."""
        numbers, self.faults.used_up = self.faults.used_up, []
        return numbers

    def _one(self, now: int, connection: int, message: Any) -> None:
        learner = self.learner if self.learner >= 0 else message.learner
        lost = self.faults.takes(learner, self.direction)
        if lost:
            self._release(message)
            return
        bulk = isinstance(message, Fragment | Refused | Update | StateCopy | PeerState)
        channel = BULK if bulk or (isinstance(message, Mark | Marker) and message.channel == BULK) else CONTROL
        at = now + self.faults.added_ns(learner, self.direction)
        bytes_per_s = self.faults.bytes_per_s(learner) if channel == BULK else 0.0
        if bytes_per_s > 0.0:
            if self._is_full(now, learner, connection, message):
                return
            at += self._through(now, learner, message, bytes_per_s)
        at = self._last[connection, channel] = max(at, self._last.get((connection, channel), 0))
        self._order += 1
        heappush(self._held, _Held(at, self._order, connection, learner, message))

    def _through(self, now: int, learner: int, message: Any, bytes_per_s: float) -> int:
        """Time until the last byte of a message is through a narrow link [ns]."""
        nbytes = self.wire.payload(message.handle).nbytes if self._has_payload(message) else 0
        begin = max(now, self._free.get(learner, 0))
        self._free[learner] = begin + int(nbytes / bytes_per_s * 1e9)
        return self._free[learner] - now

    def _is_full(self, now: int, learner: int, connection: int, message: Any) -> bool:
        """Keep no more than a sender's queue would: the newest UPDATE of a fragment takes the place of one that waits.

        True if the message is dealt with.
        """
        waiting = [i for i, h in enumerate(self._held) if h.learner == learner and h.at > now]
        if isinstance(message, Update):
            for i in waiting:
                held = self._held[i]
                if isinstance(held.message, Update) and held.message.fragment == message.fragment:
                    self._release(held.message)
                    self._held[i] = held._replace(connection=connection, message=message)
                    return True
        elif len(waiting) >= HELD_MAX:
            self._release(message)
            return True
        return False

    @staticmethod
    def _has_payload(message: Any) -> bool:
        return isinstance(message, Fragment | Update | StateCopy | PeerState) and message.handle >= 0

    def _release(self, message: Any) -> None:
        """Let go of the payload: its block may be written again."""
        if self._has_payload(message):
            self.wire.release(message.handle)
