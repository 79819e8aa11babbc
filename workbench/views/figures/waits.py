"""How long the run waited from one merge to the next, against the bound B."""

from __future__ import annotations

import holoviews as hv
import numpy as np

from workbench.analysis.arrays import spans
from workbench.analysis.arrays.self_stops import self_stops
from workbench.analysis.arrays.tables import NS, Array, Tables, run_span, since_began
from workbench.analysis.bound import bounds_s
from workbench.analysis.from_tape import config_of
from workbench.config import RunConfig
from workbench.views.frame import Axis, Look, axis, chart, dims, time_axis
from workbench.views.palette import VERMILLION, Theme, line_colour
from workbench.views.sources import Source, bands, known, span_s, tables
from workbench.views.thin import min_max

LOOKS = 120
"""Times at which B is computed."""


def waits(
    source: Source,
    *,
    config: RunConfig | None = None,
    width: int | None = None,
    height: int | None = None,
    theme: str = "light",
) -> hv.Overlay:
    """Time from each merge to the next, without what the syncer itself stood still; and B (PROTOCOL section 15).

    A wait above B is no fault by itself: B holds while K learners can take part and a merge is due.

    Parameters
    ----------
    source : tape, run folder or run
    config : RunConfig, optional
        What the run began with; a tape's own by default.
    width, height : int, optional
        [pixels]
    theme : str
        ``light`` or ``dark``.
    """
    look, given = Look.of(width, height, theme), known(source)
    found = tables(given, "waits")
    at, wait = _waits(found)
    low, high = span_s(given) or (0.0, 1.0)
    looks, bound = _bounds(found, config or config_of(given), low, high)  # type: ignore[arg-type]
    finite = bound[np.isfinite(bound)]
    across = time_axis(low, high)
    upward = axis("wait_s", "time to the next merge [s]", np.r_[wait, finite], log=True)
    layers = _layers(at, wait, looks, bound, (across, upward), look.theme) if len(wait) else []
    empty = "" if len(wait) else "fewer than two merges"
    return chart(layers, look, "Waits for a merge, and the bound B", (across, upward), bands(given), empty=empty)


def _layers(
    at: Array, wait: Array, looks: Array, bound: Array, axes: tuple[Axis, Axis], theme: Theme
) -> list[hv.Element]:
    kept = min_max(wait)
    at, wait = at[kept], wait[kept]
    limit = (
        np.interp(at, looks, np.where(np.isfinite(bound), bound, np.inf)) if len(looks) else np.full(len(at), np.inf)
    )
    long = wait > limit
    floor = np.full(len(at), axes[1].low)
    layers = []
    for mine, label, colour in ((~long, "wait", line_colour(theme, 5)), (long, "longer than B", VERMILLION)):
        if mine.any():
            names = [axes[0].key, "from", "until", axes[1].key]
            stems = hv.Segments((at[mine], floor[mine], at[mine], wait[mine]), names, label=label)
            layers.append(stems.opts(color=colour, line_width=1.5, backend="bokeh"))
    known_b = np.isfinite(bound)
    curve = hv.Curve((looks[known_b], bound[known_b]), *dims(*axes), label="bound B")
    layers.append(curve.opts(color=theme.text, line_dash="dashed", line_width=1.5, backend="bokeh"))
    return layers


def _waits(found: Tables) -> tuple[Array, Array]:
    """When each wait began, and how long it was [s]; zero is left out."""
    began, closed = run_span(found)
    merged = np.sort(found["events"]["time_ns"][found["merges"]["event"]])
    edges = np.unique(np.clip(merged, began, closed))
    if len(edges) < 2:
        return np.zeros(0), np.zeros(0)
    stopped = spans.covered(self_stops(found), edges[:-1], edges[1:])
    return np.asarray(since_began(found, edges[:-1])), np.maximum(np.diff(edges) - stopped, 1) * NS


def _bounds(found: Tables, config: RunConfig, low: float, high: float) -> tuple[Array, Array]:
    looks = np.linspace(low, high, LOOKS)
    began, _ = run_span(found)
    return looks, np.array(bounds_s(found, config, (began + looks / NS).astype(np.int64).tolist()))
