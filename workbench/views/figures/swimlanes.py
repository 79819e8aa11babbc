"""One lane for each process: what it did when, who was in which merge, and what was done to it."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np

from workbench.analysis.arrays.tables import Tables, learner_count
from workbench.views.arrows import arrow_layers
from workbench.views.cells import height_of, row_options, rows_axis
from workbench.views.frame import Look, chart, time_axis
from workbench.views.lanes import Window, fault_grounds, fault_layers, late_layers, round_layers, step_layers
from workbench.views.sources import Source, bands, known, span_s, tables

BOXES_MAX = 4000
"""Steps that are drawn one by one; of more a strip that is darker the more of its time is in steps."""

LEGEND_HEIGHT = 250
"""Of a figure with room for all names beside it [pixels]."""


def swimlanes(
    source: Source,
    *,
    start_s: float | None = None,
    end_s: float | None = None,
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
    labels = ["syncer", *(f"L{m}" for m in range(learner_count(found)))]
    look = Look.of(width, height, theme, usual=max(height_of(len(labels)), LEGEND_HEIGHT))
    window = Window(low, high, len(labels), look.theme)
    struck = [band for band in bands(given) if band.end_s >= low and band.start_s <= high]
    steps, boxes = _steps(found, window)
    layers = [
        *fault_grounds(struck, window),
        *steps,
        *round_layers(found, window),
        *fault_layers(struck, window),
        *late_layers(found, window),
        *arrow_layers(found, window),
    ]
    axes = time_axis(low, high), rows_axis(labels)
    empty = "" if len(found["steps"]["n"]) or len(found["merges"]["event"]) else "nothing happened"
    return chart(layers, look, _title(boxes), axes, empty=empty, more=row_options(labels))


def _steps(found: Tables, window: Window) -> tuple[list[Any], int]:
    inside = window.touches(found, found["steps"]["start_ns"], found["steps"]["end_ns"])
    count = int(np.count_nonzero(inside))
    return step_layers(found, window, inside, boxes=count <= BOXES_MAX), count


def _title(boxes: int) -> str:
    if boxes <= BOXES_MAX:
        return "What each process did"
    return f"What each process did: share of the time in steps ({boxes:,} of them; boxes in a part with {BOXES_MAX:,})"
