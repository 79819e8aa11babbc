"""Supervisor and evaluator: processes without a machine, with records of their own."""

from __future__ import annotations

from typing import Any

from workbench.protocol.clocks import ticked
from workbench.protocol.records import Kind, Record


class ForeignProcess:
    """The supervisor or the evaluator: records of its own, kept until the syncer has them."""

    __slots__ = ("clock", "process", "seq", "unsent")

    def __init__(self, process: int) -> None:
        self.process = process
        self.seq = 0
        self.clock: tuple[int, ...] = ()
        self.unsent: list[Record] = []

    def record(self, now: int, kind: Kind, **columns: Any) -> None:
        """Make the next record of this process."""
        self.seq += 1
        self.clock = ticked(self.clock, self.process, self.seq)
        self.unsent.append(Record(kind, self.process, 1, self.seq, now, self.clock, **columns))
