"""Who is in each merge, and why the others are not."""

from __future__ import annotations

import holoviews as hv
import numpy as np

from workbench.analysis.arrays.tables import Array
from workbench.analysis.from_tape import tables_of
from workbench.views.cells import grid, hatched, height_of, row_options, rows_axis, rows_of, shaded
from workbench.views.frame import Axis, Look, chart
from workbench.views.palette import ORANGE, Theme
from workbench.views.sources import Band, Known, Source, bands, dataset, known, merged_s
from workbench.views.thin import stretches

BOXES_MAX = 4000
COLUMNS_MAX = 400
IN, IN_ANYHOW, LEFT_OUT, ABSENT = range(4)
WORDS = ("in the merge", "in, under a fault", "left out", "not expected")


def contributions(
    source: Source, *, width: int | None = None, height: int | None = None, theme: str = "light"
) -> hv.Overlay:
    """Learners by merges: in the merge, left out of it, or not expected (dead, cut off, under a fault, healing).

    Parameters
    ----------
    source : tape, run folder, run, or Dataset of ``tape.wb.participation()``
    width, height : int, optional
        [pixels]
    theme : str
        ``light`` or ``dark``.
    """
    given = known(source)
    found = dataset(given, "participation", "included", "expected")
    included, expected = found["included"].values, found["expected"].values
    states = np.where(included, np.where(expected, IN, IN_ANYHOW), np.where(expected, LEFT_OUT, ABSENT))
    merges, learners = states.shape
    labels = [f"L{m}" for m in range(learners)]
    look = Look.of(width, height, theme, usual=height_of(learners))
    axes = Axis("merges", "merge", 0.0, max(merges, 1)), rows_axis(labels)
    boxes = [(row, *stretches(states[:, row])) for row in range(learners)]
    title = "Who is in each merge"
    if sum(len(start) for _, start, *_ in boxes) > BOXES_MAX:
        width_ = -(-merges // COLUMNS_MAX)
        image = grid(_shares(included, width_).T, axes[0], 0.0, width_ * -(-merges // width_))
        layers = [shaded(image, look.theme, 1.0)]
        title = f"Share of the merges that a learner is in; a cell is {width_} merges"
    else:
        layers = [_layer(boxes, state, axes, look.theme) for state in range(len(WORDS))]
        layers = [layer for layer in layers if len(layer)]
    empty = "" if merges else "nothing was merged"
    struck = _on_merges(given) if merges else []
    return chart(layers, look, title, axes, struck, empty=empty, rows=rows_of(labels), more=row_options(labels))


def _layer(
    boxes: list[tuple[int, Array, Array, Array]], state: int, axes: tuple[Axis, Axis], theme: Theme
) -> hv.Rectangles:
    """Boxes of one state; what is not in the merge is hatched."""
    parts = []
    for row, start, stop, value in boxes:
        mine, y = value == state, len(boxes) - 1 - row
        parts += [(a, y - 0.42, b, y + 0.42) for a, b in zip(start[mine].tolist(), stop[mine].tolist(), strict=True)]
    made = hv.Rectangles(parts, [axes[0].key, "from", "until", axes[1].key], label=WORDS[state])
    colour = (theme.lines[0], theme.lines[5], ORANGE, theme.grid)[state]
    return made.opts(color=colour, line_alpha=0, hooks=[hatched(theme)] if state >= LEFT_OUT else [], backend="bokeh")


def _shares(included: Array, width: int) -> Array:
    """Mean of each learner over stretches of merges, (stretch, learner)."""
    starts = np.arange(0, len(included), width)
    lengths = np.diff(np.r_[starts, len(included)])
    return np.asarray(np.add.reduceat(included.astype(float), starts, axis=0) / lengths[:, None])


def _on_merges(source: Known) -> list[Band]:
    struck = bands(source)
    if not struck:
        return []
    times = merged_s(tables_of(source))  # type: ignore[arg-type]
    return [
        band._replace(
            start_s=float(np.searchsorted(times, band.start_s)), end_s=float(np.searchsorted(times, band.end_s))
        )
        for band in struck
    ]
