"""Everything that no learner did, for a trace: merges, rounds, faults, lives, evaluations, incidents."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from workbench.analysis.arrays.breakdown import STATES, breakdown
from workbench.analysis.arrays.presence import FOREVER
from workbench.analysis.arrays.presence import faults as fault_rows
from workbench.analysis.arrays.rounds import OUTCOMES
from workbench.analysis.arrays.tables import Tables, events_of, run_span
from workbench.analysis.exporting.blocks import rows_of
from workbench.analysis.exporting.trace_events import (
    INCIDENTS,
    MERGES,
    ROUNDS,
    STEPS,
    Event,
    free_slice,
    instant,
    slice_of,
)
from workbench.analysis.exporting.trace_learners import Merges
from workbench.analysis.from_tape import tables_of
from workbench.protocol.records import EVALUATOR, SYNCER, Kind

SECOND = 10**9
TOLD = (
    Kind.SYNCER_STARTED, Kind.ROUNDS_BEGAN, Kind.LEARNER_JOINED, Kind.LEARNER_HEALED, Kind.LEARNER_LOST,
    Kind.LEARNER_STARVED, Kind.LEARNER_STALLED, Kind.QUORUM_LOST, Kind.QUORUM_REGAINED, Kind.SELF_STOPPED,
    Kind.RUN_ENDED, Kind.ROUND_SKIPPED, Kind.ROUND_RESTARTED, Kind.ROUND_ABORTED, Kind.SETTING_CHANGED,
)  # fmt: skip
"""Kinds of event that are moments on the syncer's track of incidents."""


def merge_slices(tape: xr.DataTree, merges: Merges) -> Iterator[Event]:
    """A slice for each merge."""
    table = tape["merges"].dataset
    names = ("round", "fragment", "version", "tokens", "norm", "setting")
    contributors = table["included"].values.sum(1, dtype=np.int64).tolist()
    spans = zip(merges.start_ns.tolist(), merges.end_ns.tolist(), contributors, strict=True)
    for values, (start, end, count) in zip(rows_of(table, "merge", names), spans, strict=True):
        told = dict(zip(names, values, strict=True))
        name = f"merge p{told['fragment']} v{told['version']}"
        yield slice_of(SYNCER, MERGES, name, start, end, contributions=count, **told)


def round_slices(tape: xr.DataTree) -> Iterator[Event]:
    """A slice for each round on the track of its fragment, its states inside."""
    tables = tables_of(tape)
    found = breakdown(tables)
    waits = np.nan_to_num(np.c_[found["open_s"], found["state_s"]] * SECOND).round().astype(np.int64)
    ends = found["opened_ns"] + waits.sum(1)
    ends = np.maximum(ends, _given_up(tables, found))
    order = np.lexsort((found["opened_ns"], found["fragment"]))
    following = dict(pairwise(order.tolist()))
    for row in order.tolist():
        opened, end, p = int(found["opened_ns"][row]), int(ends[row]), int(found["fragment"][row])
        after = following.get(row)
        if after is not None and found["fragment"][after] == p:
            end = min(end, int(found["opened_ns"][after]))
        told: dict[str, Any] = {name: int(found[name][row]) for name in ("round", "fragment", "version", "included")}
        outcome = OUTCOMES[found["outcome"][row]]
        track, name = ROUNDS + p, f"round {told['round']}, {outcome}"
        yield slice_of(SYNCER, track, name, opened, end, outcome=outcome, **told)
        reached = opened
        for state, wait in zip(("open", *STATES), waits[row].tolist(), strict=True):
            if wait and reached + wait <= end:
                yield slice_of(SYNCER, track, state, reached, reached + wait)
            reached += wait


def _given_up(tables: Tables, found: dict[str, Any]) -> np.ndarray[Any, Any]:
    """When rounds without a merge were skipped or aborted; the close of the run for those that are open [ns]."""
    events = tables["events"]
    ended = events_of(tables, Kind.ROUND_SKIPPED, Kind.ROUND_ABORTED)
    times = dict(zip(events["round"][ended].tolist(), events["time_ns"][ended].tolist(), strict=True))
    close = run_span(tables)[1]
    merged = found["outcome"] == OUTCOMES.index("merged")
    rows = zip(found["round"].tolist(), merged.tolist(), strict=True)
    return np.array([0 if was_merged else times.get(number, close) for number, was_merged in rows], np.int64)


def faults(tape: xr.DataTree) -> Iterator[Event]:
    """A slice for each fault that acted, on the process that it struck."""
    tables = tables_of(tape)
    rows, close = fault_rows(tables), run_span(tables)[1]
    for number, (process, start, end, kind) in enumerate(
        zip(rows.process.tolist(), rows.start_ns.tolist(), rows.end_ns.tolist(), rows.kind.tolist(), strict=True)
    ):
        until = max(start, close) if end >= FOREVER else end
        yield from free_slice(max(process, 0), "fault", number, f"fault: {kind}", start, until)


def lives(tape: xr.DataTree) -> Iterator[Event]:
    """A slice for each life of each process."""
    close = run_span(tables_of(tape))[1]
    names = ("process", "number", "start_ns", "end_ns", "why_ended", "host", "pid", "state_from")
    for number, values in enumerate(rows_of(tape["incarnations"].dataset, "incarnation", names)):
        told = dict(zip(names, values, strict=True))
        process, start, end = told.pop("process"), told.pop("start_ns"), told.pop("end_ns")
        if start >= 0:
            yield from free_slice(process, "life", number, "life", start, end if end >= 0 else close, **told)


def evaluations(tape: xr.DataTree) -> Iterator[Event]:
    """A slice for each evaluation."""
    reached = 0
    for end, seconds, merges, loss in rows_of(tape["evals"].dataset, "eval", ("time_ns", "seconds", "merges", "loss")):
        start = max(reached, end - round(seconds * SECOND) if seconds == seconds else end)
        reached = max(start, end)
        yield slice_of(EVALUATOR, STEPS, f"evaluation after {merges} merges", start, end, merges=merges, loss=loss)


def incidents(tape: xr.DataTree) -> Iterator[Event]:
    """Moments of the syncer's life."""
    tables = tables_of(tape)
    events, at = tables["events"], events_of(tables, *TOLD)
    columns = (events[name][at].tolist() for name in ("kind", "time_ns", "peer", "round", "reason", "value"))
    labels = tape.wb.labels
    for kind, time, peer, round_, reason, value in zip(*columns, strict=True):
        name = Kind(kind).name.lower().replace("_", " ")
        who = labels[peer] if 0 <= peer < len(labels) else ""
        title = f"{name} {who}".strip()
        yield instant(SYNCER, INCIDENTS, title, time, round=round_, reason=reason, value=value)
