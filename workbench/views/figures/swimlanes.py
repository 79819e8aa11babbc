"""One lane for each process: what it did when, who was in which merge, and what was done to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np

from workbench.analysis.arrays.tables import Tables, learner_count
from workbench.config import ConfigError
from workbench.views.arrows import arrow_layers
from workbench.views.cells import height_of, row_options, rows_axis
from workbench.views.frame import Look, chart, time_axis
from workbench.views.gaps import NONE, Gaps, gap_layers, idle_gaps, squeezed, ticks
from workbench.views.lanes import Window, fault_grounds, fault_layers, late_layers, round_layers, step_layers
from workbench.views.sources import Band, Source, bands, known, span_s, tables

BOXES_MAX = 4000
"""Steps that are drawn one by one; of more a strip that is darker the more of its time is in steps."""

LEGEND_HEIGHT = 275
"""Of a figure with room for all names beside it [pixels]."""


def swimlanes(
    source: Source,
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    learners: Sequence[int] | None = None,
    collapse_s: float | None = None,
    width: int | None = None,
    height: int | None = None,
    theme: str = "light",
) -> hv.Overlay:
    """Lanes of the syncer and of each learner over time; what is left white is idle.

    Boxes are inner steps, thin verticals the opening of rounds, arrows contributions on their way to a merge and
    updates on their way back; what was not merged is hatched, and faults are named in the lane of their target.

    Parameters
    ----------
    source : tape, run folder or run
    start_s, end_s : float, optional
        Part of the run that is shown [s from the start of rounds]; all of it by default.
    learners : sequence of int, optional
        Those that get a lane, from top to bottom; all by default, by number.
    collapse_s : float, optional
        Draw times narrow in which nobody with a lane does anything for so long [s].
    width, height : int, optional
        [pixels]
    theme : str
        ``light`` or ``dark``.
    """
    given = known(source)
    found = tables(given, "swimlanes")
    whole = span_s(given) or (0.0, 1.0)
    low = whole[0] if start_s is None else start_s
    high = max(whole[1] if end_s is None else end_s, low + 1e-3)
    shown = lanes_of(found, learners)
    labels = ["syncer", *(f"L{m}" for m in shown)]
    look = Look.of(width, height, theme, usual=max(height_of(len(labels)), LEGEND_HEIGHT))
    window = Window(low, high, shown, look.theme)
    struck = struck_in(bands(given), window)
    empty = "" if len(found["steps"]["n"]) or len(found["merges"]["event"]) else "nothing happened"
    gaps = NONE if collapse_s is None else idle_gaps(found, window, max(collapse_s, 1e-3))
    more = row_options(labels) | ({"xticks": ticks(gaps, window)} if len(gaps.start_s) else {})
    if len(gaps.start_s):
        found, struck, window = squeezed(found, gaps), _moved(struck, gaps), window._replace(high=gaps.shown(high))
    steps, boxes = _steps(found, window)
    layers = [
        *fault_grounds(struck, window),
        *steps,
        *round_layers(found, window),
        *fault_layers(struck, window),
        *late_layers(found, window),
        *arrow_layers(found, window),
        *gap_layers(gaps, window),
    ]
    axes = time_axis(low, window.high), rows_axis(labels)
    return chart(layers, look, _title(boxes), axes, empty=empty, more=more)


def _moved(struck: Sequence[Band], gaps: Gaps) -> list[Band]:
    return [one._replace(start_s=gaps.shown(one.start_s), end_s=gaps.shown(one.end_s)) for one in struck]


def lanes_of(found: Tables, learners: Sequence[int] | None) -> tuple[int, ...]:
    """Learners that get a lane: those that are asked for, or all.

    Raises
    ------
    ConfigError
        One that the tape does not know, or twice the same.
    """
    there = range(learner_count(found))
    if learners is None:
        return tuple(there)
    unknown = [m for m in learners if m not in there]
    if unknown or len(set(learners)) < len(learners):
        said = f"no learner {unknown[0]}" if unknown else "a learner twice"
        raise ConfigError(f"learners = {list(learners)} names {said}; allowed: 0 to {len(there) - 1}, each once")
    return tuple(int(m) for m in learners)


def struck_in(struck: Sequence[Band], window: Window) -> list[Band]:
    """Faults that act in the window on a process with a lane."""
    return [
        band
        for band in struck
        if band.end_s >= window.low and band.start_s <= window.high and not np.isnan(window.lane(band.process))
    ]


def _steps(found: Tables, window: Window) -> tuple[list[Any], int]:
    steps = found["steps"]
    inside = window.touches(found, steps["start_ns"], steps["end_ns"]) & window.shows(steps["learner"])
    count = int(np.count_nonzero(inside))
    return step_layers(found, window, inside, boxes=count <= BOXES_MAX), count


def _title(boxes: int) -> str:
    if boxes <= BOXES_MAX:
        return "What each process did"
    return f"What each process did: share of the time in steps ({boxes:,} of them; boxes in a part with {BOXES_MAX:,})"
