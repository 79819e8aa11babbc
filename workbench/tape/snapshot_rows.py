"""/snapshots: what each process was in each snapshot, and whether the snapshot came to be."""

from __future__ import annotations

import numpy as np

from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, Record, learner_of
from workbench.tape.arrays import Table
from workbench.tape.details import whole_list
from workbench.tape.plain_rows import FRAGMENTS_MAX

KINDS = frozenset((Kind.SNAPSHOT_RECORDED, Kind.STATE_LEFT, Kind.SNAPSHOT_COMPLETED, Kind.SNAPSHOT_ABANDONED))
"""Kinds that begin, complete or end the rows of a snapshot."""

TAKEN, COMPLETE, ABANDONED = range(3)


def add_snapshot(table: Table, record: Record, event: int) -> None:
    """Begin the row of a process in a snapshot, or say what became of it."""
    number = int(record.value) if record.value == record.value and abs(record.value) < 2**53 else -1
    if record.kind == Kind.SNAPSHOT_RECORDED:
        _recorded(table, record, event, number)
    elif record.kind == Kind.STATE_LEFT:
        if record.peer == SYNCER:
            for row in _rows(table, number, record.process):
                table.put(row, "digest", record.digest)
                table.put(row, "bytes", _whole(record.detail.get("bytes")))
    else:
        parts = record.detail.get("parts")
        for row in _rows(table, number, None):
            process = int(table.get(row, "process"))
            whole = record.kind == Kind.SNAPSHOT_COMPLETED and (
                process == SYNCER or (isinstance(parts, dict) and str(learner_of(process)) in parts)
            )
            table.put(row, "fate", COMPLETE if whole else ABANDONED)
            table.put(row, "reason", record.reason)
            if process == SYNCER:
                table.put(row, "digest", record.digest)


def _recorded(table: Table, record: Record, event: int, number: int) -> None:
    learner = learner_of(record.process) if record.process >= FIRST_LEARNER else -1
    row = table.append_row(
        event=event, snapshot=number, process=record.process, learner=learner, step=record.step, seq=record.seq,
        time_ns=record.time_ns, epoch=record.epoch, fate=TAKEN,
    )  # fmt: skip
    versions = record.detail.get("versions" if record.process == SYNCER else "base", ())
    if whole_list(versions, table.group.variable("versions")) and 0 < len(versions) <= FRAGMENTS_MAX:
        table.widen(max(table.width, len(versions)))
        table.columns["versions"].rows(row, row + 1)[0, : len(versions)] = versions


def _rows(table: Table, number: int, process: int | None) -> list[int]:
    found = table.values("snapshot") == number
    if process is not None:
        found &= table.values("process") == process
    return [int(row) for row in np.flatnonzero(found)]


def _whole(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**62 else -1
