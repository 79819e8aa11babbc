"""Times in which no shown process does anything, drawn narrow: the rest of a picture has their room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import holoviews as hv
import numpy as np

from workbench.analysis.arrays.spans import union
from workbench.analysis.arrays.tables import NS, Array, Tables, events_of, run_span
from workbench.protocol.records import Kind
from workbench.views.cells import hatched
from workbench.views.lanes import KEYS, Window

KEPT = 0.15
"""Part of the least length that a gap still has [of ``least_s``]."""
LENGTHS = ("injected_ns", "waited_ns")
"""Columns that are lengths, not points in time."""
TICKS = 8


class Gaps(NamedTuple):
    """Idle times, in order, none inside another.

    Attributes
    ----------
    start_s, end_s : ndarray (gap,)
        [s from the start of rounds]
    kept_s : float
        What is left of each in the picture [s].
    """

    start_s: Array
    end_s: Array
    kept_s: float

    def shown(self, time_s: Any) -> Any:
        """Where a time stands in the picture."""
        cut = np.asarray(time_s, float)[..., None] - (self.start_s + self.kept_s)
        gone = np.clip(cut, 0.0, self.end_s - self.start_s - self.kept_s).sum(-1)
        found = np.asarray(time_s, float) - gone
        return float(found) if np.ndim(time_s) == 0 else found

    def meant(self, place: float) -> float:
        """The time that stands at a place of the picture."""
        edges = self.shown(self.end_s) if len(self.end_s) else self.end_s
        before = edges <= place
        return float(place + (self.end_s - self.start_s - self.kept_s)[before].sum())


NONE = Gaps(np.zeros(0), np.zeros(0), 0.0)


def idle_gaps(found: Tables, window: Window, least_s: float) -> Gaps:
    """Gaps of at least ``least_s`` in the window: no shown learner is in a step, nothing is merged, no fault begins."""
    began, steps, events = run_span(found)[0], found["steps"], found["events"]
    mine = window.touches(found, steps["start_ns"], steps["end_ns"]) & window.shows(steps["learner"])
    marks = events["time_ns"][events_of(found, Kind.MERGED, Kind.FAULT_INJECTED)]
    edges = began + np.round(np.array([window.low, window.high]) / NS).astype(np.int64)
    busy = union(np.concatenate([
        np.stack([steps["start_ns"][mine], steps["end_ns"][mine]], 1), np.stack([marks, marks + 1], 1),
        np.stack([edges, edges + 1], 1),
    ]))  # fmt: skip
    busy = np.clip(busy, edges[0], edges[1])
    start, end = (busy[:-1, 1] - began) * NS, (busy[1:, 0] - began) * NS
    long = end - start >= least_s
    return Gaps(start[long], end[long], KEPT * least_s)


def squeezed(found: Tables, gaps: Gaps) -> Tables:
    """The same tables with every time where it stands in the picture."""
    began = run_span(found)[0]

    def moved(column: Array) -> Array:
        at = gaps.shown((column - began) * NS)
        return np.where(column >= 0, began + np.round(at / NS).astype(np.int64), column)

    def of(table: Mapping[str, Array]) -> dict[str, Array]:
        return {
            name: moved(values) if name.endswith("_ns") and name not in LENGTHS else values
            for name, values in table.items()
        }

    return {name: of(table) for name, table in found.items()}


def gap_layers(gaps: Gaps, window: Window) -> list[hv.Element]:
    """The gaps, hatched, with how long they are."""
    if not len(gaps.start_s):
        return []
    low = gaps.shown(gaps.start_s)
    boxes = hv.Rectangles(
        (low, np.full(len(low), -0.5), low + gaps.kept_s, np.full(len(low), window.lanes - 0.5)), KEYS, label="idle"
    )
    words = [f"{end - start:.1f} s" for start, end in zip(gaps.start_s.tolist(), gaps.end_s.tolist(), strict=True)]
    names = hv.Labels((low + gaps.kept_s / 2, np.full(len(low), -0.3), words), ["time_s", "rows"], "idle")
    return [
        boxes.opts(color=window.theme.grid, line_alpha=0, hooks=[hatched(window.theme)], backend="bokeh"),
        names.opts(text_color=window.theme.text, text_font_size="8pt", backend="bokeh"),
    ]


def ticks(gaps: Gaps, window: Window) -> list[tuple[float, str]]:
    """Times that are named at the axis, where they stand."""
    step = 10.0 ** np.floor(np.log10((window.high - window.low) / TICKS))
    step *= next(n for n in (1, 2, 5, 10) if (window.high - window.low) / (n * step) <= TICKS)
    times = np.arange(np.ceil(window.low / step) * step, window.high + step * 1e-9, step)
    hidden = ((times[:, None] > gaps.start_s) & (times[:, None] < gaps.end_s)).any(1)
    return [(gaps.shown(t), f"{t:g}") for t in times[~hidden].round(9).tolist()]
