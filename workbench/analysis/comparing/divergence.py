"""The first place at which two tapes part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from workbench.analysis.arrays.tables import NS, Array, run_span
from workbench.analysis.comparing.sentences import ENDED, RUNS, sentence
from workbench.analysis.from_tape import tables_of
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, Record, label_of
from workbench.replay.columns import COLUMNS_READ
from workbench.replay.counterfactual.comparing import same

_FOLLOWING = ("digest", "detail.outer_digest", "detail.norm", "detail.digests", "detail.weights")


class Divergence(NamedTuple):
    """The first difference between two runs.

    Attributes
    ----------
    basis : str
        ``programs``: what programs read, event by event (one run descends from the other, or both have one parent or
        one identity); ``merges``: digests of the merges, one after the other.
    event, other_event : int or None
        Of the first and the second run; None where a run ended before.
    kind, process, column : str
        What happened there, to whom, and what of it differs first.
    value, other_value
        On both tapes.
    round, fragment, merge : int
        Where; -1 for none.  ``merge`` counts the merges before it in the first run.
    time_s : float
        From the start of rounds, in the first run that has the event.
    """

    basis: str
    event: int | None
    other_event: int | None
    kind: str
    process: str
    column: str
    value: Any
    other_value: Any
    round: int
    fragment: int
    merge: int
    time_s: float

    def text(self, names: tuple[str, str] = RUNS) -> str:
        """One line, with names of both runs; its time counts from the start of rounds."""
        return sentence(self, names)

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain data; digests in hexadecimal."""
        found = self._asdict()
        for name in ("value", "other_value"):
            if self.column.endswith("digest") and isinstance(found[name], int):
                found[name] = f"{found[name]:016x}"
        return {**found, "text": self.text()}


def first_divergence(a: xr.DataTree, b: xr.DataTree) -> Divergence | None:
    """The first difference between two runs; None if there is none.

    Related runs (see `related`) are compared in what their programs read (`workbench.replay.columns`), process by
    process, since the order between processes is no part of a program; of the first differences of all processes the
    one that stands first in the journal of ``a`` counts.  Other runs are compared merge by merge.
    """
    found = _of_programs(a.wb.records(), b.wb.records()) if related(a, b) else _of_merges(a, b)
    if found is None:
        return None
    return found._replace(time_s=found.time_s - _began_s(a if found.event is not None else b))


def _began_s(tree: xr.DataTree) -> float:
    return run_span(tables_of(tree))[0] * NS


def incomparable(a: xr.DataTree, b: xr.DataTree) -> str:
    """Why what two runs computed cannot be compared; empty where it can."""
    ours = [bool(tree.attrs.get("imported")) for tree in (a, b)]
    if not any(ours) or related(a, b):
        return ""
    which = "both runs are imports" if all(ours) else f"the {'first' if ours[0] else 'second'} run is an import"
    return f"{which}: logs of another trainer hold no digests of what was merged, so that no merge can be compared"


def related(a: xr.DataTree, b: xr.DataTree) -> bool:
    """Whether runs have one identity, one parent, or one descends from the other."""
    ids = [{str(tree.attrs.get("run_id", "")), _parent_id(tree)} - {""} for tree in (a, b)]
    return bool(ids[0] & ids[1])


def _parent_id(tree: xr.DataTree) -> str:
    parent = tree.attrs.get("parent")
    return str(parent.get("run_id", "")) if isinstance(parent, dict) else ""


def _of_programs(a: list[Record], b: list[Record]) -> Divergence | None:
    one, other = _programs(a), _programs(b)
    found = [
        place
        for process in sorted({*one, *other})
        if (place := _part(a, b, one.get(process, []), other.get(process, []))) is not None
    ]
    if not found:
        return None
    event, other_event, column = min(found, key=lambda place: place[0] if place[0] is not None else place[1] or 0)
    record = a[event] if event is not None else b[other_event or 0]
    before = a[: event if event is not None else len(a)]
    return Divergence(
        "programs",
        event,
        other_event,
        Kind(record.kind).name.lower(),
        label_of(record.process),
        column,
        _value(a, event, column),
        _value(b, other_event, column),
        record.round,
        record.fragment,
        sum(r.kind == Kind.MERGED for r in before),
        record.time_ns * NS,
    )


def _programs(records: list[Record]) -> dict[int, list[int]]:
    """Events of each process that its program consists of."""
    found: dict[int, list[int]] = {}
    for event, record in enumerate(records):
        mine = record.process == SYNCER if record.kind == Kind.MERGED else record.process >= FIRST_LEARNER
        if mine and record.kind in COLUMNS_READ:
            found.setdefault(record.process, []).append(event)
    return found


def _part(
    a: list[Record], b: list[Record], one: list[int], other: list[int]
) -> tuple[int | None, int | None, str] | None:
    """Events at which the programs of one process part, and the column."""
    for event, other_event in zip(one, other, strict=False):
        column = _differs(a[event], b[other_event])
        if column:
            return event, other_event, column
    if len(one) == len(other):
        return None
    shorter = min(len(one), len(other))
    if len(one) > shorter:
        return one[shorter], None, ENDED
    return None, other[shorter], ENDED


def _differs(a: Record, b: Record) -> str:
    """First column in which what a program reads of two records differs, empty if there is none.

    What follows from the others, such as a digest, is named only where no other differs.
    """
    if a.kind != b.kind:
        return "kind"
    found = [c for c in COLUMNS_READ[Kind(a.kind)] if not same(_read(a, c), _read(b, c))]
    return next((c for c in found if c not in _FOLLOWING), next(iter(found), ""))


def _read(record: Record, column: str) -> Any:
    name, *keys = column.split(".")
    value = getattr(record, name)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _value(records: list[Record], event: int | None, column: str) -> Any:
    if event is None or column == ENDED:
        return None
    found = _read(records[event], column)
    return Kind(found).name.lower() if column == "kind" else found


_OF_MERGE = ("digest", "round", "fragment", "version")


def _of_merges(a: xr.DataTree, b: xr.DataTree) -> Divergence | None:
    rows = [{name: tree["merges"].dataset[name].values for name in (*_OF_MERGE, "event")} for tree in (a, b)]
    one, other = rows
    count = min(len(one["event"]), len(other["event"]))
    unequal = np.zeros(count, bool)
    for name in _OF_MERGE:
        unequal |= one[name][:count] != other[name][:count]
    at = int(unequal.argmax()) if unequal.any() else count
    if at == len(one["event"]) == len(other["event"]):
        return None
    column = next(_unequal_columns(one, other, at), ENDED)
    event, other_event = (_at(found["event"], at) for found in rows)
    tree, number, mine = (a, event, one) if event is not None else (b, other_event, other)
    value, other_value = (None if column == ENDED else int(found[column][at]) for found in rows)
    time_s = int(tree["events"].dataset["time_ns"][number].values) * NS
    return Divergence(
        "merges",
        event,
        other_event,
        "merged",
        label_of(SYNCER),
        column,
        value,
        other_value,
        int(mine["round"][at]),
        int(mine["fragment"][at]),
        at,
        time_s,
    )


def _unequal_columns(one: dict[str, Array], other: dict[str, Array], at: int) -> Iterator[str]:
    if at < min(len(one["event"]), len(other["event"])):
        yield from (name for name in _OF_MERGE if one[name][at] != other[name][at])


def _at(events: Array, row: int) -> int | None:
    return int(events[row]) if row < len(events) else None
