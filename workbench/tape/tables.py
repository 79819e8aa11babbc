"""All tables of a tape in memory, and how a slice of the journal is entered into them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from workbench.protocol.records import FIRST_LEARNER, Kind, learner_of
from workbench.tape import store
from workbench.tape.arrays import Item, Table
from workbench.tape.columns import Batch, event_columns
from workbench.tape.frames import JournalContents
from workbench.tape.lives import LifeRows
from workbench.tape.plain_rows import add_eval, add_fold, add_setting, add_steps
from workbench.tape.rounds import RoundRows
from workbench.tape.schema import GROUPS
from workbench.tape.seqs import SeqIndex
from workbench.tape.snapshot_rows import KINDS as SNAPSHOT_KINDS
from workbench.tape.snapshot_rows import add_snapshot
from workbench.tape.words import Words

Left = dict[int, tuple[dict[str, Any], list[str]]]
"""Detail left over and absent keys, by index in the batch."""

_ROUND_KINDS = frozenset(
    (
        Kind.FRAGMENT_ARRIVED, Kind.FRAGMENT_DROPPED, Kind.MERGED, Kind.MERGE_COMMITTED, Kind.UPDATE_SENT,
        Kind.ROUND_SKIPPED, Kind.ROUND_ABORTED, Kind.ROUND_RESTARTED,
    )
)  # fmt: skip


class Tables:
    """The tables of one tape.

    Parameters
    ----------
    words : sequence of str
        Vocabulary so far.
    arrays : mapping of str to zarr.Array, optional
        Stored arrays by path (``events/kind``); without them the tape is new.
    """

    def __init__(self, words: list[str] | None = None, arrays: Mapping[str, Any] | None = None) -> None:
        self.words, self._seqs = Words(words or ()), SeqIndex()
        self.tables = {name: Table(group) for name, group in GROUPS.items()}
        if arrays is not None:
            self._load(arrays)
        self._rounds = RoundRows(self.tables["contributions"], self.tables["merges"])
        lives = self.tables["incarnations"]
        self._lives = LifeRows(self.tables["processes"], lives)
        for process, number in zip(lives.values("process").tolist(), lives.values("number").tolist(), strict=True):
            if number >= 0:
                self._rounds.joined(learner_of(process), number)

    def _load(self, arrays: Mapping[str, Any]) -> None:
        for table in self.tables.values():
            names = [v.name for v in table.group.variables]
            if table.group.added and f"{table.group.where}/{names[0]}" not in arrays:
                continue
            table.load({name: arrays[f"{table.group.where}/{name}"] for name in names})
        numbers = store.read_all({name: arrays[f"events/{name}"] for name in ("process", "seq")})
        if self.events:
            self._seqs.add(numbers["process"].astype(np.int64), numbers["seq"], 0)

    @property
    def events(self) -> int:
        """Events entered."""
        return self.tables["events"].rows

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table."""
        return {name: table.rows for name, table in self.tables.items()}

    def metadata(self) -> Iterator[Item]:
        """Metadata of the arrays that changed."""
        for table in self.tables.values():
            yield from table.metadata(self.words.words)

    def chunks(self) -> Iterator[Item]:
        """Chunks that changed."""
        for table in self.tables.values():
            yield from table.chunks()

    def committed(self) -> None:
        """Note that the store has everything."""
        for table in self.tables.values():
            table.committed()

    def enter(self, contents: JournalContents) -> None:
        """Enter a slice of the journal."""
        first = self.events
        if contents.records:
            self._enter_records(contents)
        self._enter_inputs(contents, first)

    def _enter_records(self, contents: JournalContents) -> None:
        events = self.tables["events"]
        batch = event_columns(contents.records, events.rows, events.width, self.words, self._seqs)
        processes = self._lives.count(batch)
        self.tables["merges"].widen(max(0, processes - FIRST_LEARNER))
        events.widen(processes)
        events.append(batch.columns, len(batch.records))
        self._lives.add(batch)
        self._enter_details(batch, self._enter_kinds(batch))

    def _enter_kinds(self, batch: Batch) -> Left:
        """Enter each record into its kind's table; return the details left over."""
        left: Left = {i: (rest, []) for i, rest in add_steps(self.tables["steps"], batch).items()}
        for index in np.flatnonzero(batch.columns["kind"] != Kind.STEP_ENDED).tolist():
            rest, absent = self._enter_record(batch, index)
            if rest or absent:
                left[index] = (rest, absent)
        return left

    def _enter_record(self, batch: Batch, index: int) -> tuple[dict[str, Any], list[str]]:
        record, event = batch.records[index], batch.first + index
        if record.kind in _ROUND_KINDS:
            return self._rounds.add(batch, index)
        if record.kind == Kind.UPDATE_FOLDED:
            return add_fold(self.tables["folds"], record, event), []
        if record.kind == Kind.EVALUATED:
            return add_eval(self.tables["evals"], record, event), []
        if record.kind in SNAPSHOT_KINDS:
            add_snapshot(self.tables["snapshots"], record, event)
        elif record.kind in (Kind.SETTING_CHANGED, Kind.SETTING_APPLIED):
            add_setting(self.tables["settings"], record, event)
        elif record.kind == Kind.LEARNER_JOINED:
            self._rounds.joined(learner_of(record.peer), record.version)
        return record.detail, []

    def _enter_details(self, batch: Batch, left: Left) -> None:
        where = sorted(left.keys() | set(batch.has_leftover()))
        slices = [msgspec.msgpack.encode([*left.get(index, ({}, [])), *batch.leftover(index)]) for index in where]
        self._append_slices("details", {"event": batch.first + np.array(where, np.int64)}, slices)

    def _enter_inputs(self, contents: JournalContents, first: int) -> None:
        inputs = contents.inputs
        columns = {
            "process": [i.process for i in inputs],
            "incarnation": [i.incarnation for i in inputs],
            "time_ns": [i.time_ns for i in inputs],
            "event": [first + position for position in contents.positions],
        }
        self._append_slices("inputs", columns, [i.data for i in inputs])

    def _append_slices(self, name: str, columns: dict[str, Any], slices: list[bytes]) -> None:
        """Append rows that each name a slice of the flat bytes beside them."""
        if not slices:
            return
        flat = self.tables[f"{name[:-1]}_bytes"]
        lengths = np.array([len(s) for s in slices], np.int64)
        offsets = flat.rows + np.cumsum(lengths) - lengths
        self.tables[name].append({**columns, "offset": offsets, "bytes": lengths}, len(slices))
        data = np.frombuffer(b"".join(slices), np.uint8)
        flat.append({"data": data}, len(data))
