"""Layers of lanes: steps as boxes or as a strip, rounds, faults, and what came too late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import holoviews as hv
import numpy as np

from workbench.analysis.arrays.presence import STOPS
from workbench.analysis.arrays.tables import Array, Tables, events_of, since_began
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind
from workbench.tape.schema import DROPPED
from workbench.views.cells import grid, hatched
from workbench.views.frame import Axis
from workbench.views.palette import ORANGE, PURPLE, VERMILLION, YELLOW, Theme
from workbench.views.sources import Band
from workbench.views.thin import covered, evenly

HALF = 0.36
"""Half the height of a box in its lane."""
BINS = 1200
ROUNDS_MAX = 80
APART_MAX = 160
"""Steps in a lane between which a line is drawn."""
KEYS = ["time_s", "low", "until_s", "rows"]


class Window(NamedTuple):
    """The part of a run that is shown.

    Attributes
    ----------
    low, high : float
        [s] from the start of rounds.
    learners : tuple of int
        Those that have a lane, from top to bottom; the syncer's is above them.
    theme : Theme
    """

    low: float
    high: float
    learners: tuple[int, ...]
    theme: Theme

    @property
    def lanes(self) -> int:
        """How many there are, with the syncer's."""
        return len(self.learners) + 1

    def lane(self, process: int) -> float:
        """Height of the lane of a process; NaN for one that has none."""
        if process == SYNCER:
            return self.lanes - 1.0
        learner = process - FIRST_LEARNER
        return self.lanes - 2.0 - self.learners.index(learner) if learner in self.learners else float("nan")

    def lanes_of(self, learner: Array) -> Array:
        """Height of the lane of each learner; NaN for those that have none."""
        table = np.full(max(max(self.learners, default=-1), int(learner.max(initial=-1))) + 2, np.nan)
        table[list(self.learners)] = self.lanes - 2.0 - np.arange(len(self.learners))
        return np.asarray(table[learner])

    def shows(self, learner: Array) -> Array:
        """Whether each learner has a lane."""
        return np.isin(learner, self.learners)

    def touches(self, found: Tables, start_ns: Array, end_ns: Array) -> Array:
        """Whether any of [start, end] is shown."""
        return np.asarray((since_began(found, end_ns) >= self.low) & (since_began(found, start_ns) <= self.high))

    @property
    def least_s(self) -> float:
        """What can just be seen [s]."""
        return 0.003 * (self.high - self.low)


def _boxes(
    start: Array, stop: Array, lane: Array, label: str, half: tuple[float, float] = (HALF, HALF)
) -> hv.Rectangles:
    return hv.Rectangles((start, lane - half[0], stop, lane + half[1]), KEYS, label=label)


def step_layers(found: Tables, window: Window, inside: Array, *, boxes: bool) -> list[hv.Element]:
    """Steps in the window, one by one or as a strip; what of them was injected or waited."""
    return _step_boxes(found, window, inside) if boxes else _step_strip(found, window)


def _step_boxes(found: Tables, window: Window, inside: Array) -> list[hv.Element]:
    steps = {
        name: found["steps"][name][inside] for name in ("learner", "start_ns", "end_ns", "injected_ns", "waited_ns")
    }
    lane = window.lanes_of(steps["learner"])
    start, stop = since_began(found, steps["start_ns"]), since_began(found, steps["end_ns"])
    injected, waited = np.maximum(steps["injected_ns"], 0), np.maximum(steps["waited_ns"], 0)
    layers = []
    if len(lane):
        edge = 0.5 if len(lane) <= APART_MAX * window.lanes else 0.0
        box = _boxes(start, stop, lane, "step")
        layers.append(
            box.opts(color=window.theme.lines[0], line_color=window.theme.ground, line_width=edge, backend="bokeh")
        )
    for name, part, colour in (("injected", injected, PURPLE), ("waited", waited, YELLOW)):
        some = part > 0
        if some.any():
            low = stop[some] - part[some] * 1e-9 if name == "injected" else start[some]
            high = stop[some] if name == "injected" else np.minimum(start[some] + part[some] * 1e-9, stop[some])
            box = _boxes(np.maximum(low, start[some]), high, lane[some], name)
            layers.append(box.opts(color=colour, line_alpha=0, backend="bokeh"))
    return layers


def _step_strip(found: Tables, window: Window) -> list[hv.Element]:
    """Share of each moment that each learner spends in steps, as an image under the syncer's lane."""
    steps, edges = found["steps"], np.linspace(window.low, window.high, BINS + 1)
    strip = np.full((window.lanes, BINS), np.nan)
    for row, learner in enumerate(window.learners):
        mine = np.flatnonzero(steps["learner"] == learner)
        mine = mine[np.argsort(steps["start_ns"][mine], kind="stable")]
        low, high = (since_began(found, steps[name][mine]) for name in ("start_ns", "end_ns"))
        strip[row + 1] = covered(low, high, edges)
    strip[strip == 0] = np.nan
    axis = Axis("time_s", "", window.low, window.high)
    image = grid(strip, axis, window.low, window.high)
    return [image.opts(cmap=list(window.theme.ramp), clim=(0.0, 1.0), backend="bokeh")]


def round_layers(found: Tables, window: Window) -> list[hv.Element]:
    """Thin verticals where rounds were opened, unless they are too many; merges as marks in the syncer's lane."""
    events = found["events"]
    opened = since_began(found, events["time_ns"][events_of(found, Kind.ROUND_OPENED)])
    opened = opened[(opened >= window.low) & (opened <= window.high)]
    layers: list[hv.Element] = []
    if 0 < len(opened) <= ROUNDS_MAX:
        foot, head = np.full(len(opened), -0.5), np.full(len(opened), window.lanes - 0.5)
        lines = hv.Segments((opened, foot, opened, head), KEYS, label="round opened")
        layers.append(lines.opts(color=window.theme.faint, line_width=1, line_dash="dotted", backend="bokeh"))
    merged = since_began(found, events["time_ns"][found["merges"]["event"]])
    merged = merged[(merged >= window.low) & (merged <= window.high)]
    if len(merged):
        lane = np.full(len(merged), window.lane(SYNCER))
        kept = evenly(len(merged))
        ticks = hv.Segments((merged[kept], lane[kept] - HALF, merged[kept], lane[kept] + HALF), KEYS, label="merge")
        layers.append(ticks.opts(color=window.theme.lines[2], line_width=1.5, backend="bokeh"))
    return layers


def fault_grounds(struck: Sequence[Band], window: Window) -> list[hv.Element]:
    """Bands in the lanes of the targets of faults, to stand behind all else."""
    if not struck:
        return []
    low, high, lane = _extents(struck, window)
    boxes = _boxes(low, high, lane, "fault", (0.48, 0.48))
    return [boxes.opts(color=VERMILLION, alpha=0.3, line_color=VERMILLION, line_width=1, backend="bokeh")]


def fault_layers(struck: Sequence[Band], window: Window) -> list[hv.Element]:
    """Names of faults in the lanes of their targets; while a process is stopped it makes no step, whatever is open."""
    if not struck:
        return []
    low, high, lane = _extents(struck, window)
    layers: list[hv.Element] = []
    stops = np.array([band.kind in STOPS for band in struck])
    if stops.any():
        box = _boxes(low[stops], high[stops], lane[stops], "stopped")
        layers.append(box.opts(
            color=window.theme.ground, line_alpha=0, hooks=[hatched(window.theme)], backend="bokeh"
        ))  # fmt: skip
    labels = hv.Labels(
        (np.maximum(low, window.low), lane, [band.name.rpartition(" ")[0] for band in struck]),
        ["time_s", "rows"],
        "fault",
    )
    return [*layers, labels.opts(
        text_color=window.theme.text, text_font_size="8pt", text_align="left", text_font_style="bold", xoffset=0,
        background_fill_color=window.theme.ground, background_fill_alpha=0.75, backend="bokeh",
    )]  # fmt: skip


def _extents(struck: Sequence[Band], window: Window) -> tuple[Array, Array, Array]:
    low = np.array([band.start_s for band in struck])
    high = np.maximum([band.end_s for band in struck], low + window.least_s)
    return low, high, np.array([window.lane(band.process) for band in struck])


def late_layers(found: Tables, window: Window) -> list[hv.Element]:
    """Contributions that came and were not merged, from capture to arrival, hatched in the learner's lane."""
    rows = found["contributions"]
    start_ns = np.where(rows["captured_ns"] >= 0, rows["captured_ns"], rows["arrival_ns"])
    mine = (rows["fate"] == DROPPED) & (rows["arrival_ns"] >= 0)
    mine &= window.touches(found, start_ns, rows["arrival_ns"]) & window.shows(rows["learner"])
    if not mine.any():
        return []
    start, stop = since_began(found, start_ns[mine]), since_began(found, rows["arrival_ns"][mine])
    lane = window.lanes_of(rows["learner"][mine])
    reasons = rows["reason"][mine].astype(str)
    box = hv.Rectangles(
        (start, lane - HALF, np.maximum(stop, start + window.least_s), lane, reasons),
        KEYS,
        ["reason"],
        label="not merged",
    )
    return [box.opts(
        color=ORANGE, line_color=window.theme.text, line_width=0.5, tools=["hover"], hooks=[hatched(window.theme)],
        backend="bokeh",
    )]  # fmt: skip
