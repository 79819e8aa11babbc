"""From records to the columns of /events, all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from workbench.protocol.records import Record
from workbench.tape.schema import EVENTS, NO_WORD
from workbench.tape.seqs import SeqIndex
from workbench.tape.words import Words

_PLAIN = tuple(v.name for v in EVENTS.variables if v.name not in ("cause", "reason", "clock"))


class Batch(NamedTuple):
    """Records of one reading of the journal, and their columns.

    Attributes
    ----------
    records : sequence of Record
        In journal order.
    first : int
        Event of the first of them.
    columns : dict of str to ndarray
        Columns of /events; ``clock`` is (event, process).
    """

    records: Sequence[Record]
    first: int
    columns: dict[str, np.ndarray[Any, Any]]

    def leftover(self, index: int) -> tuple[Any, Any]:
        """Cause and reason of a record where the columns cannot hold them, else None and None."""
        record = self.records[index]
        cause = record.cause if record.cause is not None and self.columns["cause"][index] < 0 else None
        reason = record.reason if self.columns["reason"][index] == NO_WORD else None
        return cause, reason

    def has_leftover(self) -> list[int]:
        """Indices of records for which `leftover` is not empty."""
        lost = np.fromiter((r.cause is not None for r in self.records), bool, len(self.records))
        lost &= self.columns["cause"] < 0
        return np.flatnonzero(lost | (self.columns["reason"] == NO_WORD)).tolist()


def event_columns(records: Sequence[Record], first: int, width: int, words: Words, seqs: SeqIndex) -> Batch:
    """Columns of ``records``, which become the events from ``first`` on.

    Parameters
    ----------
    records : sequence of Record
        Not empty.
    first : int
        Index of the first event.
    width : int
        Processes known so far; the clock column is at least so wide.
    words, seqs : Words, SeqIndex
        Taken up and extended.
    """
    fields = Record.__struct_fields__
    by_field = dict(zip(fields, zip(*map(msgspec.structs.astuple, records), strict=True), strict=True))
    columns = {name: np.array(by_field[name], EVENTS.variable(name).numpy) for name in _PLAIN}
    columns["reason"] = np.array(words.codes(by_field["reason"]), np.int32)
    seqs.add(columns["process"].astype(np.int64), columns["seq"], first)
    columns["cause"] = _causes(by_field["cause"], first, seqs)
    columns["clock"] = _clocks(by_field["clock"], width)
    return Batch(records, first, columns)


def _causes(causes: Sequence[tuple[int, int] | None], first: int, seqs: SeqIndex) -> np.ndarray[Any, Any]:
    result = np.full(len(causes), -1, np.int64)
    at = np.array([i for i, cause in enumerate(causes) if cause is not None], np.int64)
    if len(at):
        pairs = np.array([cause for cause in causes if cause is not None], np.int64)
        result[at] = seqs.find(pairs[:, 0], pairs[:, 1], first + at)
    return result


def _clocks(clocks: Sequence[tuple[int, ...]], width: int) -> np.ndarray[Any, Any]:
    lengths = np.fromiter(map(len, clocks), np.int64, len(clocks))
    longest = int(lengths.max(initial=0))
    result = np.full((len(clocks), max(width, longest)), -1, np.int64)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        if len(rows) == len(clocks):
            result[:, :length] = np.array(clocks, np.int64).reshape(len(clocks), length)
        else:
            result[rows, :length] = np.array([clocks[i] for i in rows.tolist()], np.int64).reshape(len(rows), length)
    return result
