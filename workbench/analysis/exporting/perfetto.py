"""A tape as a Chrome trace in JSON, which ui.perfetto.dev and chrome://tracing open.

One process for each process of the run.  A learner has tracks of its steps, contributions and folds, the syncer one of
its merges and one for each fragment with its rounds and their states; arrows lead from a contribution to its merge and
from a merge to its folds; faults and lives are slices of their own.  Written event by event: a trace of any length
needs the memory of the merges alone.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO, cast

import xarray as xr

from workbench.analysis.exporting.trace_events import Event, process_names
from workbench.analysis.exporting.trace_learners import Merges, contributions, folds, merges_of, steps
from workbench.analysis.exporting.trace_others import evaluations, faults, incidents, lives, merge_slices, round_slices

CLOCKS = "each process's own monotonic clock since the run began; between machines they need not agree"


def write(tape: xr.DataTree, path: Path) -> None:
    """Write the trace of a tape; compressed where the name asks for it."""
    with _opened(path) as file:
        file.write('{"displayTimeUnit":"ms","otherData":')
        file.write(json.dumps(_facts(tape)))
        file.write(',"traceEvents":[\n')
        separator = ""
        for event in events(tape):
            file.write(separator)
            file.write(json.dumps(event, separators=(",", ":"), allow_nan=False))
            separator = ",\n"
        file.write("\n]}\n")


def _opened(path: Path) -> TextIO:
    if ".gz" in path.suffixes[-2:]:  # the last one is that of a file that is not whole yet
        return cast(TextIO, gzip.open(path, "wt", encoding="utf-8", compresslevel=6))
    return path.open("w", encoding="utf-8")


def _facts(tape: xr.DataTree) -> dict[str, str]:
    names = ("run_id", "clock", "code_version")
    return {**{name: str(tape.attrs.get(name, "")) for name in names}, "clocks": CLOCKS}


def events(tape: xr.DataTree) -> Iterator[Event]:
    """All events of the trace; those of a track in order of time."""
    merges: Merges = merges_of(tape)
    yield from process_names(tape)
    yield from steps(tape)
    yield from contributions(tape, merges)
    yield from folds(tape, merges)
    yield from merge_slices(tape, merges)
    yield from round_slices(tape)
    yield from faults(tape)
    yield from lives(tape)
    yield from evaluations(tape)
    yield from incidents(tape)


def trace(tape: xr.DataTree) -> dict[str, Any]:
    """The whole trace in memory."""
    return {"displayTimeUnit": "ms", "otherData": _facts(tape), "traceEvents": list(events(tape))}
