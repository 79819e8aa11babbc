"""The longest wait for a merge around each fault, beside the bound B from the step times before it (PROTOCOL 15)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.analysis.arrays import spans
from workbench.analysis.arrays.presence import faults
from workbench.analysis.arrays.self_stops import self_stops
from workbench.analysis.arrays.tables import NS, Tables, events_of, run_span
from workbench.analysis.bound import bounds_s
from workbench.config import RunConfig
from workbench.protocol.records import Kind


class FaultWait(NamedTuple):
    """A fault that struck.

    Attributes
    ----------
    kind : str
    process : int
        Target, by process number.
    start_ns, end_ns : int
        Between which it acted; no later than the close of the run.
    longest_s : float
        Longest time between two merges that overlaps it [s], without what the syncer itself stood still; NaN if no
        two merges enclose any of it.
    bound_s : float
        B as of its start [s].
    """

    kind: str
    process: int
    start_ns: int
    end_ns: int
    longest_s: float
    bound_s: float


def fault_waits(tables: Tables, config: RunConfig) -> list[FaultWait]:
    """Each fault of a run, in order of time.

    Parameters
    ----------
    tables : tables
        From `workbench.analysis.from_records.tables` or a tape.
    config : RunConfig
        What the run began with; changes on the tape are followed.
    """
    _, closed = run_span(tables)
    found = faults(tables)
    merged = np.sort(tables["events"]["time_ns"][events_of(tables, Kind.MERGED)])
    stopped = self_stops(tables)
    bounds = bounds_s(tables, config, found.start_ns.tolist())
    waits = []
    for i in np.argsort(found.start_ns, kind="stable").tolist():
        start, end = int(found.start_ns[i]), int(min(found.end_ns[i], max(closed, found.start_ns[i])))
        first = int(np.searchsorted(merged, start, "right")) - 1
        last = int(np.searchsorted(merged, end, "left"))
        edges = merged[max(first, 0) : last + 1]
        between = np.diff(edges) - spans.covered(stopped, edges[:-1], edges[1:])
        longest = float(between.max()) * NS if len(between) else float("nan")
        waits.append(FaultWait(str(found.kind[i]), int(found.process[i]), start, end, longest, bounds[i]))
    return waits
