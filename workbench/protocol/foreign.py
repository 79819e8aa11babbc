"""Supervisor and evaluator: processes without a machine, with records of their own."""

from __future__ import annotations

from typing import Any

from workbench.protocol.clocks import ticked
from workbench.protocol.records import Kind, Record


class ForeignProcess:
    """The supervisor or the evaluator: records of its own, kept until the syncer has them."""

    __slots__ = ("clock", "epoch", "life", "process", "seq", "unsent")

    def __init__(self, process: int) -> None:
        self.process = process
        self.seq = 0
        self.life = 1
        self.epoch = 0
        self.clock: tuple[int, ...] = ()
        self.unsent: list[Record] = []

    def begin_again(self, seq: int, epoch: int, clock: tuple[int, ...]) -> None:
        """Another process after a resume: its numbers go on where the journal ends."""
        self.life, self.seq, self.epoch, self.clock, self.unsent = self.life + 1, seq, epoch, clock, []

    def record(self, now: int, kind: Kind, **columns: Any) -> None:
        """Make the next record of this process."""
        self.seq += 1
        self.clock = ticked(self.clock, self.process, self.seq)
        made = Record(kind, self.process, self.life, self.seq, now, self.clock, epoch=self.epoch, **columns)
        self.unsent.append(made)
