"""What learners did, for a trace: steps, contributions with arrows to their merges, folds with arrows from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from workbench.analysis.arrays.tables import Array
from workbench.analysis.exporting.blocks import blocks, rows_of
from workbench.analysis.exporting.trace_events import (
    CONTRIBUTIONS,
    FOLDS,
    MERGES,
    STEPS,
    THIN_NS,
    Event,
    arrow,
    slice_of,
)
from workbench.protocol.records import SYNCER, Kind, process_of
from workbench.tape.schema import FATES


class Merges(NamedTuple):
    """When each merge was made, as slices that do not overlap: (merge,) [ns], and their rows by version."""

    start_ns: Array
    end_ns: Array
    by_version: dict[tuple[int, int, int], int]


def merges_of(tape: xr.DataTree) -> Merges:
    """Slices of the merges: from the end of pulling to the end of the arithmetic, one after the other."""
    table = tape["merges"].dataset
    pulled, made = table["pull_ns"].values, table["merge_ns"].values
    recorded = np.asarray(tape["events"].dataset["time_ns"].values)[table["event"].values]
    end = np.where(made >= 0, made, recorded)
    start, end = _disjoint(np.where(pulled >= 0, pulled, end), end)
    keys = zip(*(table[name].values.tolist() for name in ("epoch", "fragment", "version")), strict=True)
    return Merges(start, end, {key: row for row, key in enumerate(keys)})


def _disjoint(start_ns: Array, end_ns: Array) -> tuple[Array, Array]:
    """Spans in their order, none empty, each behind the one before."""
    reached, spans = 0, []
    for start, end in zip(start_ns.tolist(), end_ns.tolist(), strict=True):
        start = max(start, reached)
        reached = max(end, start + 1)
        spans.append((start, reached))
    found = np.array(spans, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def steps(tape: xr.DataTree) -> Iterator[Event]:
    """A slice for each inner step."""
    names = ("process", "start_ns", "end_ns", "n", "g", "tokens", "loss", "batch", "injected_ns", "waited_ns")
    reached: dict[int, int] = {}
    for process, start, end, n, g, tokens, loss, batch, injected, waited in rows_of(
        tape["steps"].dataset, "step", names
    ):
        begin = max(start, reached.get(process, 0))
        reached[process] = max(begin, end)
        yield slice_of(
            process, STEPS, f"step {n}", begin, end, n=n, g=g, tokens=tokens, loss=loss, batch=batch,
            injected_ns=injected, waited_ns=waited,
        )  # fmt: skip


def contributions(tape: xr.DataTree, merges: Merges) -> Iterator[Event]:
    """A thin slice where each contribution was captured, and an arrow to the merge that took it."""
    names = (
        "learner", "captured_ns", "arrival_ns", "fragment", "round", "step", "c_steps", "c_tokens", "bytes",
        "base_version", "fate", "reason", "merge", "norm", "cosine",
    )  # fmt: skip
    words = [*tape.attrs["words"], ""]
    thin = _Thin()
    for row, values in enumerate(rows_of(tape["contributions"].dataset, "contribution", names)):
        told: dict[str, Any] = dict(zip(names, values, strict=True))
        learner, captured, merge = told.pop("learner"), told.pop("captured_ns"), told.pop("merge")
        captured = captured if captured >= 0 else told["arrival_ns"]
        if captured < 0:
            continue
        told["fate"], told["reason"] = FATES[told["fate"]], words[told["reason"]]
        process = process_of(learner)
        start, end = thin.place(process, captured)
        yield slice_of(process, CONTRIBUTIONS, f"p{told['fragment']}, {told['fate']}", start, end, **told)
        if merge >= 0:
            into = int(merges.start_ns[merge])
            yield from arrow("contribution", 2 * row, (process, CONTRIBUTIONS, start), (SYNCER, MERGES, into))


def folds(tape: xr.DataTree, merges: Merges) -> Iterator[Event]:
    """A thin slice for each fold, and an arrow from the merge that made its version."""
    names = ("kind", "process", "time_ns", "fragment", "version", "base_version", "step", "value", "reason", "epoch")
    words = [*tape.attrs["words"], ""]
    thin, number = _Thin(), 0
    for columns in blocks(tape["events"].dataset, "event", names):
        kept = columns[0] == Kind.UPDATE_FOLDED
        for _, process, time, p, version, base, step, alpha, rule, epoch in zip(
            *(column[kept].tolist() for column in columns), strict=True
        ):
            start, end = thin.place(process, time)
            yield slice_of(
                process, FOLDS, f"p{p} v{version}", start, end, fragment=p, version=version, base_version=base,
                step=step, alpha=alpha, rule=words[rule],
            )  # fmt: skip
            row = merges.by_version.get((epoch, p, version))
            if row is not None:
                number += 1
                source = (SYNCER, MERGES, int(merges.end_ns[row]) - 1)
                yield from arrow("update", 2 * number + 1, source, (process, FOLDS, start))


class _Thin:
    """Slices of a track for what has no length: never beyond the next, which begins behind it if need be."""

    def __init__(self) -> None:
        self._reached: dict[int, int] = {}

    def place(self, process: int, time_ns: int) -> tuple[int, int]:
        """Begin and end of the next slice of a process's track [ns]."""
        start = max(time_ns, self._reached.get(process, 0))
        self._reached[process] = start + THIN_NS
        return start, start + THIN_NS
