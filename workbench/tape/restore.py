"""From a tape back to the records that it was made of, in journal order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import xarray as xr

from workbench.protocol.records import Kind, Record
from workbench.tape.errors import TapeError, first_line
from workbench.tape.frames import Input
from workbench.tape.plain_rows import EVAL_COLUMNS, FOLD_COLUMNS, STEP_COLUMNS
from workbench.tape.rounds import ARRIVAL_COLUMNS, LIST_COLUMNS, MERGE_COLUMNS
from workbench.tape.schema import EVENTS, GROUPS, NO_WORD

ByEvent = dict[int, dict[str, Any]]


def records(tree: xr.DataTree) -> list[Record]:
    """All records of a tape, equal to those that were journaled.

    Raises
    ------
    TapeError
        When tables of the tape contradict each other.
    """
    events = tree["events"].dataset
    if not events.sizes.get("event"):
        return []
    columns = {v.name: events[v.name].values for v in EVENTS.variables}
    details, left = _details(tree, columns["kind"]), _slices(tree["details"].dataset, "event")
    lists = {name: values.tolist() for name, values in columns.items()}
    causes = _causes(columns)
    words = _words(tree)
    result = []
    for row in range(len(lists["kind"])):
        detail, cause = details.get(row, {}), causes.get(row)
        reason_code = lists["reason"][row]
        reason = words[reason_code] if 0 <= reason_code < len(words) else ""
        if row in left:
            rest, absent, lost_cause, lost_reason = _leftover(left[row], row)
            for key in absent:
                detail.pop(key, None)
            if "learners" in rest:
                for key in LIST_COLUMNS:
                    detail.pop(key, None)
            detail.update(rest)
            cause = tuple(lost_cause) if lost_cause is not None else cause
            reason = lost_reason if reason_code == NO_WORD and lost_reason is not None else reason
        result.append(_record(lists, row, cause, reason, detail))
    return result


_PLAIN = [name for name in Record.__struct_fields__ if name not in ("clock", "cause", "reason", "detail")]


def _record(lists: dict[str, list[Any]], row: int, cause: Any, reason: str, detail: dict[str, Any]) -> Record:
    clock = lists["clock"][row]
    while clock and clock[-1] < 0:
        clock.pop()
    plain = {name: lists[name][row] for name in _PLAIN}
    return Record(**plain, clock=tuple(clock), cause=cause, reason=reason, detail=detail)


def inputs(tree: xr.DataTree) -> list[Input]:
    """All recorded inputs of the machines, in journal order."""
    table = tree["inputs"].dataset
    data = _slices(table, None)
    columns = [table[name].values.tolist() for name in ("process", "incarnation", "time_ns")]
    rows = zip(*columns, strict=True)
    return [Input(process, life, time_ns, data[i]) for i, (process, life, time_ns) in enumerate(rows)]


def details_of_events(tree: xr.DataTree, events: np.ndarray[Any, Any]) -> dict[int, dict[str, Any]]:
    """What events (event,) have beyond the columns of all tables, by event; those with nothing are left out."""
    table = tree["details"].dataset
    rows = np.flatnonzero(np.isin(table["event"].values, events))
    slices = _slices(table, "event", rows) if len(rows) else {}
    return {event: _leftover(data, event)[0] for event, data in slices.items()}


class Details:
    """What single events have beyond the columns of all tables, decoded when it is asked for.

    Parameters
    ----------
    tree : xarray.DataTree
    """

    def __init__(self, tree: xr.DataTree) -> None:
        table = tree["details"].dataset
        events = table["event"].values
        order = np.argsort(events, kind="stable")
        self._events, self._data = events[order], table["data"].values
        self._offsets, self._lengths = table["offset"].values[order], table["bytes"].values[order]

    def of(self, event: int) -> dict[str, Any]:
        """Of one event; nothing for most."""
        row = int(np.searchsorted(self._events, event))
        if row >= len(self._events) or self._events[row] != event:
            return {}
        offset, length = int(self._offsets[row]), int(self._lengths[row])
        return _leftover(self._data[offset : offset + length].tobytes(), event)[0]


def _words(tree: xr.DataTree) -> list[str]:
    return list(tree.attrs["words"])


def _causes(columns: dict[str, np.ndarray[Any, Any]]) -> dict[int, tuple[int, int]]:
    rows = np.flatnonzero(columns["cause"] >= 0)
    sends = columns["cause"][rows]
    if len(sends) and (sends >= len(columns["cause"])).any():
        raise TapeError(f"/events/cause names event {int(sends.max())}, but there are {len(columns['cause'])}")
    pairs = zip(columns["process"][sends].tolist(), columns["seq"][sends].tolist(), strict=True)
    return dict(zip(rows.tolist(), pairs, strict=True))


def _slices(table: xr.Dataset, key: str | None, rows: np.ndarray[Any, Any] | None = None) -> dict[int, bytes]:
    """Slices of the flat bytes, by row or by the column ``key``; of some rows only if given."""
    data, chosen = table["data"].values.tobytes(), slice(None) if rows is None else rows
    offsets, lengths = table["offset"].values[chosen].tolist(), table["bytes"].values[chosen].tolist()
    keys: Iterable[int] = range(len(offsets)) if key is None else table[key].values[chosen].tolist()
    result = {}
    for at, offset, length in zip(keys, offsets, lengths, strict=True):
        if not 0 <= offset <= offset + length <= len(data):
            raise TapeError(f"a slice of {length} bytes at {offset} lies outside the {len(data)} bytes stored")
        result[at] = data[offset : offset + length]
    return result


def _leftover(data: bytes, event: int) -> tuple[dict[str, Any], list[str], Any, Any]:
    try:
        return msgspec.msgpack.decode(data, type=tuple[dict[str, Any], list[str], tuple[int, int] | None, str | None])
    except msgspec.DecodeError as error:
        raise TapeError(f"the detail of event {event} is damaged: {first_line(error)}") from error


def _details(tree: xr.DataTree, kinds: np.ndarray[Any, Any]) -> ByEvent:
    """Details that the tables of the kinds hold, by event."""
    result: ByEvent = {}
    for name, names in (
        ("steps", STEP_COLUMNS),
        ("folds", FOLD_COLUMNS),
        ("evals", EVAL_COLUMNS),
        ("merges", MERGE_COLUMNS),
    ):
        _from_table(tree[name].dataset, name, names, "event", None, result)
    _eval_versions(tree["evals"].dataset, result)
    contributions = tree["contributions"].dataset
    for key, kind in (("event", Kind.FRAGMENT_ARRIVED), ("fate_event", Kind.FRAGMENT_DROPPED)):
        rows = contributions[key].values
        mine = (rows >= 0) & (rows < len(kinds))
        mine[mine] = kinds[rows[mine]] == kind
        _from_table(contributions, "contributions", ARRIVAL_COLUMNS, key, mine, result)
    _merge_lists(tree, result)
    return result


def _from_table(
    table: xr.Dataset, name: str, names: dict[str, str], key: str, where: np.ndarray[Any, Any] | None, result: ByEvent
) -> None:
    events = table[key].values if where is None else table[key].values[where]
    rows = events.tolist()
    for detail_key, column in names.items():
        fill = GROUPS[name].variable(column).fill
        values = table[column].values if where is None else table[column].values[where]
        for event, value in zip(rows, values.tolist(), strict=True):
            if value != fill and value == value:
                result.setdefault(event, {})[detail_key] = value


def _eval_versions(table: xr.Dataset, result: ByEvent) -> None:
    for event, versions in zip(table["event"].values.tolist(), table["versions"].values.tolist(), strict=True):
        while versions and versions[-1] == -1:
            versions.pop()
        if versions:
            result.setdefault(event, {})["versions"] = versions


def _merge_lists(tree: xr.DataTree, result: ByEvent) -> None:
    """Lists of MERGED records: the cells of the contributions in it, by learner."""
    table = tree["contributions"].dataset
    merge, learner = table["merge"].values, table["learner"].values
    order = np.lexsort((learner, merge))
    order = order[merge[order] >= 0]
    if not len(order):
        return
    columns = {key: table[name].values[order].tolist() for key, name in LIST_COLUMNS.items()}
    columns["learners"] = learner[order].tolist()
    numbers, starts = np.unique(merge[order], return_index=True)
    stops = [*starts[1:].tolist(), len(order)]
    events = tree["merges"].dataset["event"].values
    if int(numbers[-1]) >= len(events):
        raise TapeError(f"/contributions/merge names merge {int(numbers[-1])}, but there are {len(events)}")
    for number, start, stop in zip(numbers.tolist(), starts.tolist(), stops, strict=True):
        detail = result.setdefault(int(events[number]), {})
        detail.update({key: values[start:stop] for key, values in columns.items()})
