"""Values by number, and what the processes of the small world consist of."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from workbench.protocol import actions as act
from workbench.protocol.learner_state import LearnerState
from workbench.protocol.messages import LearnerMessage, SyncerMessage
from workbench.protocol.records import Record
from workbench.protocol.syncer_state import SyncerState
from workbench.simulate.arithmetic import Work

TOKENS = 1
"""Tokens of a step."""

Event = tuple[Any, ...]
"""What happens to a process: a word, and numbers that go with it."""


class Life(msgspec.Struct):
    """A learner process: its machine, what its parameters hold (see `Ledgered`), and the own step in progress."""

    number: int
    state: LearnerState
    work: list[list[int]]
    base: list[int]
    host: list[list[int]]
    kept: list[tuple[int, int, tuple[int, ...]]] = []
    step: int = 0


class Restored(msgspec.Struct):
    """What a restart makes of the records so far: all that the future can read of a journal."""

    state: SyncerState
    uncommitted: list[tuple[int, int, int]]


class Outcome(NamedTuple):
    """The number of the next state, and effects in order."""

    number: int
    effects: tuple[Event, ...]


class Table:
    """Values by number; equal bytes have one number."""

    def __init__(self, kind: Any) -> None:
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._numbers: dict[bytes, int] = {}
        self._bytes: list[bytes] = []

    def put(self, value: Any) -> int:
        """Number of a value."""
        packed = self._encode(value)
        number = self._numbers.setdefault(packed, len(self._bytes))
        if number == len(self._bytes):
            self._bytes.append(packed)
        return number

    def get(self, number: int) -> Any:
        """A fresh copy of a value."""
        return self._decode(self._bytes[number])

    def __len__(self) -> int:
        return len(self._bytes)


class Tables:
    """All that has a number."""

    def __init__(self) -> None:
        self.syncers = Table(SyncerState)
        self.lives = Table(Life)
        self.journals = Table(Restored)
        self.up = Table(LearnerMessage)
        self.down = Table(SyncerMessage)
        self.batches = Table(list[Record])
        self.orders = Table(act.Merge)
        self.works: list[Work] = []
        self._work_numbers: dict[Work, int] = {}

    def put_work(self, work: Work) -> int:
        """Number under which a contribution travels."""
        number = self._work_numbers.setdefault(work, len(self.works))
        if number == len(self.works):
            self.works.append(work)
        return number
