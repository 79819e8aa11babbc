"""Which message every machine heard, noted beside its clocks: an oracle of the causal order that reads no clock of
a record, for random runs in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from workbench.protocol.foreign import ForeignProcess
from workbench.protocol.learner_core import LearnerCore
from workbench.protocol.records import SYNCER, Kind, Record
from workbench.protocol.syncer_core import SyncerCore
from workbench.tape.causality import CausalIndex

Made = tuple[int, int, int]
"""(process, seq, time [ns]) of a record: a number is used again if its record never reached the journal."""


class Heard:
    """What every machine knew of, as bits of the records made: of which records a message of its had told."""

    def __init__(self) -> None:
        self.serial: dict[Made, int] = {}
        self.known: dict[Made, int] = {}
        self.of_machine: dict[int, int] = {}
        self.of_clock: dict[int, tuple[Any, int]] = {}
        self.kept: list[Any] = []

    def hear(self, state: Any, clock: tuple[int, ...]) -> None:
        """A machine hears a message, which bears the clock that its sender had."""
        self.of_machine[id(state)] = self.of_machine.get(id(state), 0) | self.of_clock.get(id(clock), (None, 0))[1]

    def record(self, state: Any, process: int, now: int) -> None:
        """A machine makes a record."""
        made = (process, state.seq, now)
        known = self.of_machine.get(id(state), 0)
        self.serial[made], self.known[made] = len(self.serial), known
        self.of_machine[id(state)] = known | 1 << self.serial[made]

    def clock(self, state: Any) -> None:
        """Remember what a machine knows with the clock that it has now: the same object travels in its messages."""
        self.kept.append(state)  # its id stays its own
        self.of_clock[id(state.clock)] = (state.clock, self.of_machine.get(id(state), 0))


@contextmanager
def listening() -> Iterator[Heard]:
    """Note what all machines hear meanwhile."""
    heard = Heard()
    with pytest.MonkeyPatch.context() as patch:
        for kind in (SyncerCore, LearnerCore):
            _listen(patch, heard, kind)
        record = ForeignProcess.record

        def foreign(process: Any, now: int, *arguments: Any, **columns: Any) -> None:
            record(process, now, *arguments, **columns)
            heard.record(process, process.process, now)
            heard.clock(process)

        patch.setattr(ForeignProcess, "record", foreign)
        yield heard


def _listen(patch: pytest.MonkeyPatch, heard: Heard, kind: Any) -> None:
    hear, record = kind.hear, kind.record

    def hears(core: Any, clock: tuple[int, ...]) -> None:
        heard.hear(core.state, clock)
        hear(core, clock)
        heard.clock(core.state)

    def records(core: Any, *arguments: Any, **columns: Any) -> Any:
        result = record(core, *arguments, **columns)
        heard.record(core.state, SYNCER if kind is SyncerCore else core.process, core.now)
        heard.clock(core.state)
        return result

    patch.setattr(kind, "hear", hears)
    patch.setattr(kind, "record", records)


def pasts(records: list[Record], heard: Heard) -> list[int]:
    """Transitive closure over program order, recorded causes and what was heard: bit j of entry i is j before i.

    A syncer that starts again has read the whole journal.
    """
    event_of = {heard.serial[r.process, r.seq, r.time_ns]: event for event, r in enumerate(records)}
    places = {(r.process, r.seq): event for event, r in enumerate(records)}
    found: list[int] = []
    for event, r in enumerate(records):
        if r.kind == Kind.SYNCER_STARTED and r.reason == "restart":
            found.append((1 << event) - 1)
            continue
        causes = {event_of[serial] for serial in _bits(heard.known[r.process, r.seq, r.time_ns])}
        causes |= {places[place] for place in ((r.process, r.seq - 1), r.cause) if place is not None and place[1] > 0}
        assert max(causes, default=-1) < event, "the journal is a linear extension of the causal order"
        past = 0
        for cause in causes:
            past |= 1 << cause | found[cause]
        found.append(past)
    return found


def _bits(known: int) -> Iterator[int]:
    text = bin(known)[:1:-1]
    at = text.find("1")
    while at >= 0:
        yield at
        at = text.find("1", at + 1)


def index_of(records: list[Record]) -> CausalIndex:
    """The causal index of records that lie on no tape."""
    width = max(len(r.clock) for r in records)
    clock = np.array([[*r.clock, *[-1] * (width - len(r.clock))] for r in records], np.int64)
    places = {(r.process, r.seq): event for event, r in enumerate(records)}
    cause = np.array([-1 if r.cause is None else places[r.cause] for r in records], np.int64)
    columns = (np.array([getattr(r, name) for r in records], np.int64) for name in ("process", "seq", "time_ns"))
    process, seq, time_ns = columns
    return CausalIndex(process, seq, clock, cause, time_ns)
