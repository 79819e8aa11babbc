"""A whole run in a strip: the loss, faults, exclusions, along any timeline."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.analysis.timelines import NAMES, Timeline
from workbench.pages.recording import Recording
from workbench.protocol.records import Kind
from workbench.views.sources import bands

BINS = 240
MARKS_MAX = 300
"""Exclusions that are drawn one by one; of more every n-th."""


class Overview(NamedTuple):
    """What a `Scrubber` shows.

    Attributes
    ----------
    marks : list of dict
    line : list of (float, float)
    low, high, legend : str
    """

    marks: list[dict[str, Any]]
    line: list[tuple[float, float]]
    low: str
    high: str
    legend: str


def overview(recording: Recording, axis: str) -> Overview:
    """Draw a run along an axis."""
    along = recording.timeline(axis)
    found = bands(recording.tape)
    faults = [_fault(recording, along, band.name, band.start_s, band.end_s) for band in found]
    excluded, left_out = _exclusions(recording, along)
    line, low, high = _loss(recording, along)
    loss = f"line: training loss {high:.2f} to {low:.2f}" if line else "no loss recorded"
    more = f" (not shown: {left_out:,})" if left_out else ""
    legend = f"{NAMES[axis]} · {loss} · bands: {len(found):,} faults · ticks: merges without somebody{more}"
    return Overview(faults + excluded, line, along.text(along.low), along.text(along.high), legend)


def _fault(recording: Recording, along: Timeline, name: str, start_s: float, end_s: float) -> dict[str, Any]:
    def part(time_s: float) -> float:
        if along.name == "wall":
            return float(np.clip(along.part_of(time_s), 0.0, 1.0))
        return float(np.clip(along.part_of(along.until[recording.at_time(time_s)]), 0.0, 1.0))

    return {"x": part(start_s), "to": part(end_s), "kind": "fault", "name": name}


def _exclusions(recording: Recording, along: Timeline) -> tuple[list[dict[str, Any]], int]:
    events = recording.places("exclusion")
    every = max(1, -(-len(events) // MARKS_MAX))
    shown = events[::every].tolist()
    marks = [{"x": along.part(e), "to": along.part(e), "kind": "exclusion", "name": f"event {e:,}"} for e in shown]
    return marks, len(events) - len(shown)


def _loss(recording: Recording, along: Timeline) -> tuple[list[tuple[float, float]], float, float]:
    kinds, loss = recording.column("kind"), recording.column("value")
    stepped = np.flatnonzero((kinds == int(Kind.STEP_ENDED)) & np.isfinite(loss))
    if not len(stepped):
        return [], 0.0, 0.0
    x = np.clip(along.part_of(along.values[stepped]), 0.0, 1.0)
    cell = np.minimum((x * BINS).astype(int), BINS - 1)
    count = np.bincount(cell, minlength=BINS)
    mean = np.bincount(cell, loss[stepped], minlength=BINS) / np.maximum(count, 1)
    there = np.flatnonzero(count)
    low, high = float(mean[there].min()), float(mean[there].max())
    height = (mean[there] - low) / max(high - low, 1e-12)
    return [((c + 0.5) / BINS, float(y)) for c, y in zip(there.tolist(), height.tolist(), strict=True)], low, high
