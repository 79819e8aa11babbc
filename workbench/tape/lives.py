"""/processes and /incarnations: who took part, in which lives."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from workbench.protocol.records import FIRST_LEARNER, Kind, Record, label_of, learner_of
from workbench.tape.arrays import Table
from workbench.tape.columns import Batch

KINDS = (
    Kind.SYNCER_STARTED,
    Kind.LEARNER_JOINED,
    Kind.LEARNER_LOST,
    Kind.STATE_ADOPTED,
    Kind.PROCESS_STARTED,
    Kind.PROCESS_ENDED,
)
"""Kinds of record that begin, describe or end a life."""


class LifeRows:
    """Makes and completes the rows of /processes and /incarnations.

    A supervisor's start of a process makes a row without an incarnation number; the syncer's WELCOME
    gives it one.  A re-join makes a new row of the same process start.
    """

    def __init__(self, processes: Table, incarnations: Table) -> None:
        self.processes, self.incarnations = processes, incarnations
        self._row: dict[tuple[int, int], int] = {}
        self._unnumbered: dict[int, list[int]] = {}
        pairs = zip(incarnations.values("process").tolist(), incarnations.values("number").tolist(), strict=True)
        for row, (process, number) in enumerate(pairs):
            if number < 0:
                self._unnumbered.setdefault(process, []).append(row)
            else:
                self._row[process, number] = row

    def count(self, batch: Batch) -> int:
        """Enter the processes that a batch names; return how many there are."""
        peers = batch.columns["peer"]
        highest = max(int(batch.columns["process"].max()), int(peers.max()), batch.columns["clock"].shape[1] - 1)
        for process in range(self.processes.rows, highest + 1):
            learner = process >= FIRST_LEARNER
            label = label_of(process)
            self.processes.append_row(
                label=label, kind="learner" if learner else label, learner=learner_of(process) if learner else -1
            )
        return self.processes.rows

    def add(self, batch: Batch) -> None:
        """Enter all records of a batch that concern lives, and lives that no record announced."""
        life = batch.columns["process"].astype(np.int64) << 32 | (
            batch.columns["incarnation"].astype(np.int64) & 0xFFFFFFFF
        )
        firsts = set(np.unique(life, return_index=True)[1].tolist())
        told = np.isin(batch.columns["kind"], np.array(KINDS, np.int16))
        for index in sorted(firsts | set(np.flatnonzero(told).tolist())):
            record = batch.records[index]
            if record.kind in KINDS:
                self._told(record, batch.first + index)
            if index in firsts and (record.process, record.incarnation) not in self._row:
                self._begin(record.process, record.incarnation, record, batch.first + index)

    def _told(self, record: Record, event: int) -> None:
        kind, peer = record.kind, record.peer
        if kind == Kind.SYNCER_STARTED:
            self._describe(self._begin(record.process, record.incarnation, record, event), record)
        elif kind == Kind.PROCESS_STARTED:
            row = self._new(peer, -1, record, event)
            self.incarnations.put(row, "start_number", _whole(record.value))
            self._unnumbered.setdefault(peer, []).append(row)
            self._describe(row, record)
        elif kind == Kind.LEARNER_JOINED:
            row = self._begin(peer, record.version, record, event, _whole(record.value))
            self.incarnations.put(row, "first_step", record.step)
            self._describe(row, record)
        elif kind == Kind.STATE_ADOPTED:
            row = self._begin(record.process, record.incarnation, record, event)
            if not self.incarnations.get(row, "state_from"):
                self.incarnations.put(row, "state_from", record.reason)
            self._describe(row, record)
        elif kind == Kind.LEARNER_LOST:
            self._end(self._row.get((peer, record.version), -1), record, event)
        elif kind == Kind.PROCESS_ENDED:
            for row in self._of_start(peer, _whole(record.value)):
                self._end(row, record, event)

    def _begin(self, process: int, number: int, record: Record, event: int, start: int = -1) -> int:
        """Row of (process, number): known, or a start that has no number yet, or a new one."""
        row = self._row.get((process, number), -1)
        if row >= 0:
            return row
        waiting = self._unnumbered.get(process, [])
        match = [r for r in waiting if start in (-1, int(self.incarnations.get(r, "start_number")))]
        if match:
            row = match[-1]
            waiting.remove(row)
            self.incarnations.put(row, "number", number)
        else:
            row = self._new(process, number, record, event)
            self._inherit(row, process, start)
        self._row[process, number] = row
        return row

    def _new(self, process: int, number: int, record: Record, event: int) -> int:
        return self.incarnations.append_row(
            process=process, number=number, start_ns=record.time_ns, start_event=event, start_number=-1
        )

    def _inherit(self, row: int, process: int, start: int) -> None:
        if start < 0:
            return
        self.incarnations.put(row, "start_number", start)
        for older in [r for r in self._of_start(process, start) if r != row][-1:]:
            for name in ("host", "pid", "fingerprint"):
                self.incarnations.put(row, name, self.incarnations.get(older, name))

    def _of_start(self, process: int, start: int) -> list[int]:
        processes, starts = self.incarnations.values("process"), self.incarnations.values("start_number")
        return [int(row) for row in np.flatnonzero((processes == process) & (starts == start))]

    def _describe(self, row: int, record: Record) -> None:
        detail = record.detail
        if isinstance(detail.get("host"), str):
            self.incarnations.put(row, "host", detail["host"])
        if isinstance(detail.get("pid"), int) and 0 <= detail["pid"] < 2**63:
            self.incarnations.put(row, "pid", detail["pid"])
        if detail.get("fingerprint"):
            self.incarnations.put(row, "fingerprint", as_json(detail["fingerprint"]))

    def _end(self, row: int, record: Record, event: int) -> None:
        if row >= 0 and self.incarnations.unset(row, "end_event"):
            self.incarnations.put(row, "end_ns", record.time_ns)
            self.incarnations.put(row, "end_event", event)
            self.incarnations.put(row, "why_ended", record.reason)


def as_json(value: Any) -> str:
    """A value as JSON text; bytes as hex."""
    return json.dumps(value, sort_keys=True, default=lambda v: v.hex() if isinstance(v, bytes) else str(v))


def _whole(value: float) -> int:
    """A whole number that a float column carries, -1 if it holds none."""
    return int(value) if value == value and abs(value) < 2**53 else -1
