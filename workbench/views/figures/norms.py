"""Norms of the merged outer gradients."""

from __future__ import annotations

import holoviews as hv
import numpy as np

from workbench.views.frame import Look, axis, chart, dims, time_axis
from workbench.views.palette import line_colour
from workbench.views.smoothing import FAINT, check, smoothed
from workbench.views.sources import Source, bands, known, merged_s, span_s, tables
from workbench.views.thin import min_max


def norms(
    source: Source, *, smooth: float = 0.0, width: int | None = None, height: int | None = None, theme: str = "light"
) -> hv.Overlay:
    """Norm of the outer gradient of each merge.

    Parameters
    ----------
    source : tape, run folder or run
    smooth : float
        Weight of what was in a moving average over all fragments that is drawn before the norms; 0: none.
    width, height : int, optional
        [pixels]
    theme : str
        ``light`` or ``dark``.
    """
    check(smooth)
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
        strength = FAINT if smooth else 0.5
        layers.append(
            points.opts(color=line_colour(look.theme, 5), alpha=strength, size=4, tools=["hover"], backend="bokeh")
        )
    if len(values) and smooth:
        mean = smoothed(values, smooth)
        curve = hv.Curve((at[kept], mean[kept]), *dims(across, upward), label="moving average")
        layers.append(curve.opts(color=line_colour(look.theme, 0), line_width=2, backend="bokeh"))
    empty = "" if len(values) else "no merge has a norm"
    return chart(
        layers, look, "Norms of the outer gradients", (across, upward),
        bands(known(source)), empty=empty,
    )  # fmt: skip
