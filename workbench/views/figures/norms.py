"""Norms of the merged outer gradients."""

from __future__ import annotations

import holoviews as hv
import numpy as np

from workbench.analysis.arrays.tables import Array
from workbench.views.frame import Look, axis, chart, dims, time_axis
from workbench.views.palette import line_colour
from workbench.views.sources import Source, bands, known, merged_s, span_s, tables
from workbench.views.thin import min_max

SMOOTHED = 0.1
"""Weight of a new value in the average."""


def norms(source: Source, *, width: int | None = None, height: int | None = None, theme: str = "light") -> hv.Overlay:
    """Norm of the outer gradient of each merge, and its moving average over all fragments.

    Parameters
    ----------
    source : tape, run folder or run
    width, height : int, optional
        [pixels]
    theme : str
        ``light`` or ``dark``.
    """
    look, found = Look.of(width, height, theme), tables(source, "norms")
    values = found["merges"]["norm"].astype(float)
    finite = np.isfinite(values) & (values > 0)
    at, values, fragment = merged_s(found)[finite], values[finite], found["merges"]["fragment"][finite]
    across = time_axis(*(span_s(known(source)) or (0.0, 1.0)))
    upward = axis("outer_norm", "norm of the outer gradient", values, log=True)
    layers = []
    if len(values):
        kept = min_max(values)
        points = hv.Scatter(
            (at[kept], values[kept], fragment[kept]), *dims(across, upward, "fragment"), label="one merge"
        )
        layers.append(
            points.opts(color=line_colour(look.theme, 5), alpha=0.5, size=4, tools=["hover"], backend="bokeh")
        )
        mean = _smoothed(values)
        curve = hv.Curve((at[kept], mean[kept]), *dims(across, upward), label="moving average")
        layers.append(curve.opts(color=line_colour(look.theme, 0), line_width=2, backend="bokeh"))
    empty = "" if len(values) else "no merge has a norm"
    return chart(
        layers, look, "Norms of the outer gradients", (across, upward),
        bands(known(source)), empty=empty,
    )  # fmt: skip


def _smoothed(values: Array) -> Array:
    """Moving average without the pull of its first value: weights of what there is, no more."""
    total = weight = 0.0
    result = np.empty(len(values))
    for n, value in enumerate(values.tolist()):
        total += SMOOTHED * (value - total)
        weight += SMOOTHED * (1.0 - weight)
        result[n] = total / weight
    return result
