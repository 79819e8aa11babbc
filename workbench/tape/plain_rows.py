"""/steps, /folds, /settings and /evals: rows that a single record makes."""

from __future__ import annotations

from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from workbench.protocol.records import FIRST_LEARNER, Kind, Record
from workbench.tape.arrays import Table
from workbench.tape.columns import Batch
from workbench.tape.details import split, whole_list
from workbench.tape.lives import as_json

STEP_COLUMNS = {
    "batch": "batch",
    "accumulation": "accumulation",
    "start_ns": "start_ns",
    "end_ns": "end_ns",
    "injected_ns": "injected_ns",
    "waited_ns": "waited_ns",
}
FOLD_COLUMNS = {"reference": "reference", "included": "included", "anew": "anew"}
EVAL_COLUMNS = {"seconds": "seconds"}
FRAGMENTS_MAX = 65536

_step_values = itemgetter(*STEP_COLUMNS)
Leftover = dict[int, dict[str, Any]]
"""Detail left over, by index in the batch."""


def add_steps(table: Table, batch: Batch) -> Leftover:
    """Append the STEP_ENDED records of a batch to /steps."""
    where = np.flatnonzero(batch.columns["kind"] == Kind.STEP_ENDED)
    if not len(where):
        return {}
    take = {name: batch.columns[name][where] for name in ("process", "incarnation", "tokens", "epoch")}
    columns, rest = _step_details(table, [batch.records[i].detail for i in where.tolist()])
    table.append(
        {
            **take,
            **columns,
            "event": batch.first + where,
            "learner": take["process"] - FIRST_LEARNER,
            "n": batch.columns["step"][where],
            "g": batch.columns["global_step"][where],
            "loss": batch.columns["value"][where],
        },
        len(where),
    )
    return {int(where[i]): left for i, left in rest.items()}


def _step_details(table: Table, details: list[dict[str, Any]]) -> tuple[dict[str, Any], Leftover]:
    """Columns of all details at once when all have exactly the known keys, else one by one."""
    try:
        values = [_step_values(detail) for detail in details]
    except KeyError:
        values = []
    if (
        values
        and set(map(len, details)) == {len(STEP_COLUMNS)}
        and set(map(type, chain.from_iterable(values))) == {int}
    ):
        try:
            matrix = np.array(values, np.int64)
        except OverflowError:
            matrix = np.full((1, 1), -1)
        if matrix.min() >= 0:
            return dict(zip(STEP_COLUMNS.values(), matrix.T, strict=True)), {}
    columns = {name: np.full(len(details), -1, np.int64) for name in STEP_COLUMNS.values()}
    rest: Leftover = {}
    for i, detail in enumerate(details):
        found, left = split(table, detail, STEP_COLUMNS)
        for name, value in found.items():
            columns[name][i] = value
        if left:
            rest[i] = left
    return columns, rest


def add_fold(table: Table, record: Record, event: int) -> dict[str, Any]:
    """Append an UPDATE_FOLDED record to /folds."""
    columns, rest = split(table, record.detail, FOLD_COLUMNS)
    table.append_row(event=event, **columns)
    return rest


def add_eval(table: Table, record: Record, event: int) -> dict[str, Any]:
    """Append an EVALUATED record to /evals."""
    columns, rest = split(table, record.detail, EVAL_COLUMNS)
    row = table.append_row(
        event=event, time_ns=record.time_ns, merges=record.steps, tokens=record.tokens, loss=record.value, **columns
    )
    versions = record.detail.get("versions", ())
    if whole_list(versions, table.group.variable("versions")) and 0 < len(versions) <= FRAGMENTS_MAX:
        table.widen(max(table.width, len(versions)))
        table.columns["versions"].rows(row, row + 1)[0, : len(versions)] = versions
        del rest["versions"]
    return rest


def add_setting(table: Table, record: Record, event: int) -> None:
    """Append a row per key of an accepted change, or note from where a change acted."""
    if record.kind == Kind.SETTING_APPLIED:
        _applied(table, record)
        return
    values = record.detail.get("values")
    for key, value in (values if isinstance(values, dict) else {}).items():
        table.append_row(
            revision=record.setting, key=str(key), value=as_json(value), who=str(record.detail.get("who", "")),
            event=event, time_ns=record.time_ns, epoch=record.epoch,
        )  # fmt: skip


def _applied(table: Table, record: Record) -> None:
    if record.process >= FIRST_LEARNER:
        name, value = "first_step", record.step
    else:
        name, value = "first_round", record.round
    for row in np.flatnonzero(table.values("revision") == record.setting).tolist():
        if table.unset(row, name) and value >= 0:
            table.put(row, name, value)
