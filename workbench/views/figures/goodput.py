"""Goodput, and what the rest of the allocated time went into, over the time of a run."""

from __future__ import annotations

import holoviews as hv
import numpy as np

from workbench.analysis.arrays.tables import Array
from workbench.views.frame import Look, axis, chart, dims, time_axis
from workbench.views.palette import CAUSES, GREEN
from workbench.views.sources import Source, bands, dataset, known

BINS = 60


def goodput(
    source: Source, *, bins: int = BINS, width: int | None = None, height: int | None = None, theme: str = "light"
) -> hv.Overlay:
    """Shares of the allocated time of all learners, stacked: useful at the bottom, badput by cause above.

    Parameters
    ----------
    source : tape, run folder, run, or Dataset of ``tape.wb.goodput_over_time()``
    bins : int
        Parts of equal length into which the run is cut.
    width, height : int, optional
        [pixels]
    theme : str
        ``light`` or ``dark``.
    """
    look, found = Look.of(width, height, theme), known(source)
    shares = dataset(found, "goodput_over_time", "goodput", "badput", bins=bins)
    edges = np.r_[shares["start_s"].values, shares["end_s"].values[-1:]]
    across = time_axis(float(edges[0]), float(edges[-1])) if len(edges) else time_axis(0.0, 1.0)
    upward = axis("share", "share of allocated time", [0.0, 1.0], zero=True, room=0.0)
    causes = [str(cause) for cause in shares["cause"].values]
    parts = [("goodput", GREEN, shares["goodput"].values)]
    parts += [(cause, CAUSES[cause], shares["badput"].sel(cause=cause).values) for cause in causes]
    floor, layers = np.zeros(len(edges) - 1), []
    for name, colour, part in parts:
        if not np.nansum(part) > 0:
            continue
        at, low, high = _stairs(edges, floor, floor + np.nan_to_num(part))
        area = hv.Area((at, low, high), *dims(across, upward, "top"), label=name)
        layers.append(area.opts(color=colour, fill_alpha=0.85, line_alpha=0, backend="bokeh"))
        floor = floor + np.nan_to_num(part)
    empty = "" if layers else "no learner has joined"
    return chart(layers, look, "Goodput and badput", (across, upward), bands(found), empty=empty)


def _stairs(edges: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Points of an area that is level within each part."""
    return np.repeat(edges, 2)[1:-1], np.repeat(low, 2), np.repeat(high, 2)
