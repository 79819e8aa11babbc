"""What tests of real processes share: a tiny run, and waiting for events with a guard against hangs."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.config import RunConfig
from workbench.engine.launch import Run
from workbench.engine.runtime_folder import process_started
from workbench.protocol.records import Kind, Record, process_of
from workbench.tape.frames import read_journal

GUARD_S = 120.0
TINY = {
    "model.layers": 1,
    "model.width": 16,
    "model.heads": 2,
    "model.kv_heads": 1,
    "model.mlp": 32,
    "model.context": 16,
    "inner.batch": 2,
}


def tiny(learners: int = 3, rounds: int = 10**6, **values: object) -> RunConfig:
    """A model of which a step takes milliseconds."""
    given = {"learners": learners, "rounds": rounds, "period": 6, "fragments": 3, "eval_every": 0, "eval_batches": 2}
    return RunConfig().set({**given, **TINY, **values})


def until(condition: Callable[[], bool], what: str, guard_s: float = GUARD_S) -> None:
    """Wait for an event; the guard is an order of magnitude above what it takes."""
    end = time.monotonic() + guard_s
    while not condition():
        assert time.monotonic() < end, f"waited {guard_s:.0f} s in vain until {what}"
        time.sleep(0.05)


def lives(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    return process_started(pid) >= 0


def records_of(run: Path) -> list[Record]:
    """All records of a run's journal."""
    return read_journal(run / "journal").records


def of_kind(records: list[Record], kind: Kind) -> list[Record]:
    """Records of one kind."""
    return [record for record in records if record.kind == kind]


class Journal:
    """The records of a run that goes on, each read once."""

    def __init__(self, run: Path) -> None:
        self.path = run / "journal"
        self.offset = 0
        self.known: list[Record] = []

    def records(self) -> list[Record]:
        found = read_journal(self.path, self.offset)
        self.offset = found.offset
        self.known += found.records
        return self.known

    def ended(self, kind: str, learner: int) -> bool:
        """Whether a fault of this kind is over."""
        found = of_kind(self.records(), Kind.FAULT_ENDED)
        return any((r.reason, r.peer) == (kind, process_of(learner)) for r in found)

    def has_merged(self, learner: int, after: Kind, value: float | None = None) -> bool:
        """Whether a learner is in a merge that came after the first record of a kind (and value) that concerns it."""
        return self.is_merged(learner, self.since(learner, after, value))

    def is_merged(self, learner: int, since: int) -> bool:
        """Whether a learner is in a merge from the record with this index on."""
        return any(learner in r.detail["learners"] for r in of_kind(self.records()[since:], Kind.MERGED))

    def since(self, learner: int, kind: Kind, value: float | None = None, from_: int = 0) -> int:
        """Index of the first record of a kind (and value) that concerns a learner; beyond any if there is none yet.

        Not the end of what is known: records that are read a moment later would count as coming after it.
        """
        records = self.records()
        about = [i for i, r in enumerate(records) if i >= from_ and r.kind == kind and r.peer == process_of(learner)]
        return next((i for i in about if value is None or records[i].value == value), sys.maxsize)


def kill_everything(run: Run) -> None:
    """SIGKILL to the supervisor, then to whatever is left of the run."""
    status: dict[str, Any] = run.status()
    supervisor = run._supervisor
    assert supervisor is not None
    supervisor.send_signal(signal.SIGKILL)
    for pid in status["processes"]:
        os.kill(pid, signal.SIGKILL)
    run.stop()
    until(lambda: not any(lives(pid) for pid in status["processes"]), "nothing of it is left")
