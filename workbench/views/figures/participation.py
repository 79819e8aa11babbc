"""How many learners live, can be reached, and are in each merge."""

from __future__ import annotations

import holoviews as hv
import numpy as np
import xarray as xr

from workbench.analysis.from_tape import tables_of
from workbench.views.frame import Axis, Look, axis, chart, dims, time_axis
from workbench.views.palette import line_colour
from workbench.views.sources import Known, Source, bands, dataset, known, merged_s, span_s
from workbench.views.thin import min_max

COUNTS = {"alive": "process alive", "reachable": "connected", "contributed": "in the merge"}


def participation(
    source: Source, *, width: int | None = None, height: int | None = None, theme: str = "light"
) -> hv.Overlay:
    """Learners at each merge: alive, connected, contributed.

    Parameters
    ----------
    source : tape, run folder, run, or Dataset of ``tape.wb.participation()`` (which knows rounds, no times)
    width, height : int, optional
        [pixels]
    theme : str
        ``light`` or ``dark``.
    """
    look, found = Look.of(width, height, theme), known(source)
    counts = dataset(found, "participation", *COUNTS)
    across, at = _across(found, counts)
    learners = counts.sizes.get("learner", 0)
    upward = axis("learners", "learners", [0.0, max(learners, 1)], zero=True, room=0.12)
    layers = []
    for number, (name, label) in enumerate(COUNTS.items()):
        kept = min_max(counts[name].values)
        curve = hv.Curve((at[kept], counts[name].values[kept]), *dims(across, upward), label=label)
        width_ = (5, 2.5, 1.5)[number]
        curve = curve.opts(interpolation="steps-post", line_width=width_, backend="bokeh")
        layers.append(curve.opts(color=line_colour(look.theme, (6, 5, 0)[number]), backend="bokeh"))
    share = float(counts["participation"]) if "participation" in counts else float("nan")
    title = "Learners at each merge" + ("" if np.isnan(share) else f" (participation {share * 100:.4g} %)")
    empty = "" if len(at) else "nothing was merged"
    return chart(layers if len(at) else [], look, title, (across, upward), bands(found), empty=empty)


def _across(source: Known, counts: xr.Dataset) -> tuple[Axis, np.ndarray]:
    """Times where they are known, else rounds."""
    span = span_s(source)
    if span is None:
        rounds = counts["round"].values.astype(float)
        return axis("rounds", "round t", rounds, room=0.01), rounds
    return time_axis(*span), merged_s(tables_of(source))  # type: ignore[arg-type]
