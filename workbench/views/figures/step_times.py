"""How long the learners' steps took, and how far the learners are behind: a line for each, or a band for many."""

from __future__ import annotations

import holoviews as hv
import numpy as np

from workbench.analysis.arrays.grouped import grouped_spread
from workbench.analysis.arrays.tables import NS, Array, since_began
from workbench.views.frame import Axis, Look, axis, chart, dims, time_axis
from workbench.views.palette import Theme, line_colour, line_dash
from workbench.views.smoothing import FAINT, check, smoothed
from workbench.views.sources import Source, bands, dataset, known, span_s, tables
from workbench.views.thin import min_max

BINS = 240
POINTS_MAX = 800
"""Of each learner's line."""
LINES_MAX = 14
"""Learners that have a line each; of more the median, between the smallest and the largest."""

Lines = dict[str, tuple[Array, Array, Array, Array]]
"""By name: time, middle, low, high."""


def step_times(
    source: Source,
    *,
    bins: int = BINS,
    smooth: float = 0.0,
    width: int | None = None,
    height: int | None = None,
    theme: str = "light",
) -> hv.Overlay:
    """Duration of inner steps by learner: the median of each part of the run, between the shortest and the longest.

    Parameters
    ----------
    source : tape, run folder or run
    bins : int
        Parts of equal length into which the run is cut.
    smooth : float
        Weight of what was in a moving average that is drawn before each line; 0: none.
    width, height : int, optional
        [pixels]
    theme : str
        ``light`` or ``dark``.
    """
    check(smooth)
    look, given = Look.of(width, height, theme), known(source)
    steps = (found := tables(given, "step_times"))["steps"]
    at, took = since_began(found, steps["end_ns"]), (steps["end_ns"] - steps["start_ns"]) * NS * 1e3
    low, high = span_s(given) or (0.0, 1.0)
    edges = np.linspace(low, max(high, low + 1e-9), bins + 1)
    learners = np.unique(steps["learner"]).tolist()
    groups = [(f"L{m}", steps["learner"] == m) for m in learners]
    if len(groups) > LINES_MAX:
        groups = [(f"{len(groups)} learners", np.ones(len(at), bool))]
    lines = {name: _binned(at[mine], took[mine], edges) for name, mine in groups}
    across = time_axis(low, high)
    upward = axis(
        "step_ms", "time of a step [ms]", np.concatenate([[], *(line[3] for line in lines.values())]), zero=True
    )
    empty = "" if len(took) else "no step was made"
    return chart(
        _drawn(lines, (across, upward), look.theme, "steps-pre", smooth),
        look,
        "Time of a step",
        (across, upward),
        bands(given),
        empty=empty,
    )


def behind(source: Source, *, width: int | None = None, height: int | None = None, theme: str = "light") -> hv.Overlay:
    """How far each learner is behind the syncer, in versions.

    Parameters
    ----------
    source : tape, run folder, run, or Dataset of ``tape.wb.behind()``
    width, height : int, optional
        [pixels]
    theme : str
        ``light`` or ``dark``.
    """
    look, given = Look.of(width, height, theme), known(source)
    found = dataset(given, "behind", "behind")
    span = span_s(given)
    at, values = found["time_s"].values, found["behind"].values
    if span is not None:
        at = at - _began_s(given)
    across = time_axis(*(span or (float(at.min(initial=0.0)), float(at.max(initial=1.0)))))
    upward = axis("behind", "versions behind", values, zero=True)
    lines: Lines = {}
    if values.shape[1] > LINES_MAX and len(at):
        lines[f"{values.shape[1]} learners"] = (at, np.median(values, 1), values.min(1), values.max(1))
    elif len(at):
        for m, mine in enumerate(values.T):
            kept = min_max(mine, POINTS_MAX)
            lines[f"L{m}"] = (at[kept], mine[kept], mine[kept], mine[kept])
    empty = "" if len(at) else "nothing was merged"
    layers = _drawn(lines, (across, upward), look.theme, "steps-post")
    title = "How far learners are behind the syncer: mean over fragments"
    return chart(layers, look, title, (across, upward), bands(given), empty=empty)


def _began_s(given: Source) -> float:
    return -float(since_began(tables(given, "behind"), 0))


def _binned(at: Array, values: Array, edges: Array) -> tuple[Array, Array, Array, Array]:
    """Median, least and largest of each part that has a value."""
    where = np.clip(np.searchsorted(edges, at, "right") - 1, 0, len(edges) - 2)
    told = grouped_spread(values, where, len(edges) - 1)
    lowest = np.full(len(edges) - 1, np.inf)
    np.minimum.at(lowest, where, values)
    some = told["count"] > 0
    return edges[1:][some], told["median"][some], lowest[some], told["max"][some]


def _drawn(lines: Lines, axes: tuple[Axis, Axis], theme: Theme, stairs: str, smooth: float = 0.0) -> list[hv.Element]:
    layers: list[hv.Element] = []
    for number, (name, (at, middle, low, high)) in enumerate(lines.items()):
        colour, dash = line_colour(theme, number), line_dash(theme, number)
        if (high > low).any():
            area = hv.Area((at, low, high), *dims(*axes, "most"))
            layers.append(area.opts(color=colour, fill_alpha=0.15, line_alpha=0, backend="bokeh"))
        looks = {"color": colour, "line_dash": dash, "line_width": 1.5, "backend": "bokeh"}
        curve = hv.Curve((at, middle), *dims(*axes), label=name)
        layers.append(curve.opts(interpolation=stairs, alpha=FAINT if smooth else 1.0, **looks))
        if smooth:
            mean = hv.Curve((at, smoothed(middle, smooth)), *dims(*axes), label=f"{name}, smoothed")
            layers.append(mean.opts(**looks))
    return layers
