"""Events of the Chrome trace format: slices, arrows, instants, names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import xarray as xr

from workbench.protocol.records import FIRST_LEARNER, SYNCER

Event = dict[str, Any]

STEPS, CONTRIBUTIONS, FOLDS = 1, 2, 3
"""Tracks of a learner."""
MERGES, INCIDENTS, ROUNDS = 1, 2, 10
"""Tracks of the syncer; that of fragment p's rounds is ``ROUNDS + p``."""
THIN_NS = 1000
"""Length of what has none, as far as it fits before the next of its track [ns]."""


def pid(process: int) -> int:
    """Number of a process in the trace: 0 is the idle task of traces of a kernel."""
    return process + 1


def us(time_ns: float) -> float:
    """Time in the trace [µs]."""
    return time_ns / 1000


def slice_of(process: int, track: int, name: str, start_ns: int, end_ns: int, /, **args: Any) -> Event:
    """A slice of a track; slices of one track are disjoint or one inside the other."""
    return {
        "ph": "X", "pid": pid(process), "tid": track, "name": name, "ts": us(start_ns),
        "dur": us(max(0, end_ns - start_ns)), "args": known(args),
    }  # fmt: skip


def free_slice(
    process: int, kind: str, number: int, name: str, start_ns: int, end_ns: int, /, **args: Any
) -> list[Event]:
    """Begin and end of a slice that may overlap others."""
    same = {"cat": kind, "id": number, "pid": pid(process), "tid": 0, "name": name}
    begin = {"ph": "b", **same, "ts": us(start_ns), "args": known(args)}
    return [begin, {"ph": "e", **same, "ts": us(max(start_ns, end_ns))}]


def arrow(kind: str, number: int, source: tuple[int, int, int], target: tuple[int, int, int]) -> list[Event]:
    """An arrow between slices, each named by (process, track, a time inside the slice [ns])."""
    ends = []
    for phase, (process, track, time_ns) in (("s", source), ("f", target)):
        event = {"ph": phase, "cat": kind, "name": kind, "id": number}
        event |= {"pid": pid(process), "tid": track, "ts": us(time_ns)}
        ends.append(event | ({"bp": "e"} if phase == "f" else {}))
    return ends


def instant(process: int, track: int, name: str, time_ns: int, /, **args: Any) -> Event:
    """A moment on a track."""
    return {
        "ph": "i", "s": "t", "pid": pid(process), "tid": track, "name": name, "ts": us(time_ns), "args": known(args)
    }  # fmt: skip


def known(args: dict[str, Any]) -> dict[str, Any]:
    """Arguments that have a value: no -1, nothing empty, no number that JSON lacks."""
    return {
        name: value
        for name, value in args.items()
        if value not in (-1, "") and not (isinstance(value, float) and not math.isfinite(value))
    }


def process_names(tape: xr.DataTree) -> Iterator[Event]:
    """Names of processes and tracks, the syncer first."""
    fragments = int(tape["events"].dataset["fragment"].max()) + 1 if tape["events"].dataset.sizes["event"] else 0
    for process, label in enumerate(tape.wb.labels):
        yield _named("process_name", process, 0, name=label)
        yield _named("process_sort_index", process, 0, sort_index=process)
        tracks = {}
        if process >= FIRST_LEARNER:
            tracks = {STEPS: "steps", CONTRIBUTIONS: "contributions", FOLDS: "folds"}
        elif process == SYNCER:
            rounds = {ROUNDS + p: f"rounds of p{p}" for p in range(fragments)}
            tracks = {MERGES: "merges", INCIDENTS: "incidents", **rounds}
        for track, name in tracks.items():
            yield _named("thread_name", process, track, name=name)
            yield _named("thread_sort_index", process, track, sort_index=track)


def _named(what: str, process: int, track: int, **args: Any) -> Event:
    return {"ph": "M", "pid": pid(process), "tid": track, "name": what, "args": args}
