"""The validation loss against what was spent on it."""

from __future__ import annotations

import holoviews as hv
import numpy as np

from workbench.analysis.arrays.efficiency import AXES
from workbench.config import ConfigError
from workbench.views.frame import Axis, Look, axis, chart, dims
from workbench.views.palette import line_colour, line_dash
from workbench.views.smoothing import FAINT, check, smoothed
from workbench.views.sources import Band, Known, Source, bands, dataset, several, span_s

X_LABELS = {
    "tokens_processed": "tokens processed",
    "tokens_merged": "tokens merged",
    "time_s": "time since the start of rounds [s]",
    "merges": "merges in the evaluated weights",
    "rounds": "rounds opened",
}


def loss(
    source: Source,
    *,
    x: str = "tokens_processed",
    smooth: float = 0.0,
    width: int | None = None,
    height: int | None = None,
    theme: str = "light",
) -> hv.Overlay:
    """Validation loss of one run or several.

    Parameters
    ----------
    source : tape, run folder, run, Dataset of ``tape.wb.efficiency()``; or several, by name or in a list
    x : str
        ``tokens_processed``, ``tokens_merged``, ``time_s``, ``merges`` or ``rounds``.
    smooth : float
        Weight of what was in a moving average that is drawn before the line; 0: none.
    width, height : int, optional
        [pixels]
    theme : str
        ``light`` or ``dark``.

    Raises
    ------
    ConfigError
        For another ``x`` or ``smooth``, or a source that has no loss.
    """
    if x not in AXES:
        raise ConfigError(f"x = {x!r}; allowed: {', '.join(AXES)}")
    check(smooth)
    look, runs = Look.of(width, height, theme), several(source)
    found = {name: _curve(one, x) for name, one in runs.items()}
    spans = [span_s(one) or () for one in runs.values()] if x == "time_s" else []  # losses end before their runs do
    across = axis(x, X_LABELS[x], np.concatenate([*(curve[0] for curve in found.values()), *spans]), room=0.02)
    upward = axis("loss", "validation loss [nat per byte]", [v for curve in found.values() for v in curve[1]])
    layers = []
    for number, (name, (at, values)) in enumerate(found.items()):
        colour = line_colour(look.theme, number)
        label, dash = name if len(found) > 1 else "validation loss", line_dash(look.theme, number)
        if smooth:
            raw = hv.Curve((at, values), *dims(across, upward), label=label)
            layers.append(raw.opts(color=colour, alpha=FAINT, line_dash=dash, line_width=1.5, backend="bokeh"))
        drawn = smoothed(values, smooth) if smooth else values
        curve = hv.Curve((at, drawn), *dims(across, upward), label=f"{label}, smoothed" if smooth else label)
        layers.append(curve.opts(color=colour, line_dash=dash, line_width=2, backend="bokeh"))
        points = hv.Scatter((at, values), *dims(across, upward))
        strength = FAINT if smooth else 1.0
        layers.append(points.opts(color=colour, alpha=strength, size=5, tools=["hover"], backend="bokeh"))
    nothing = not any(len(at) for at, _ in found.values())
    struck = _on(next(iter(runs.values())), across) if len(runs) == 1 and not nothing else []
    title = f"Validation loss against {X_LABELS[x].partition(' [')[0]}"
    empty = "nothing was evaluated" if nothing else ""
    return chart(layers, look, title, (across, upward), struck, empty=empty, legend=len(found) > 1 or smooth > 0)


def _curve(source: Known, x: str) -> tuple[np.ndarray, np.ndarray]:
    found = dataset(source, "efficiency", "loss", x)
    order = np.argsort(found[x].values, kind="stable")
    return found[x].values[order].astype(float), found["loss"].values[order].astype(float)


def _on(source: Known, across: Axis) -> list[Band]:
    """Faults at their places on the x axis, on straight lines between evaluations."""
    struck = bands(source)
    if across.key == "time_s" or not struck:
        return struck
    found = dataset(source, "efficiency", "loss")
    order = np.argsort(found["time_s"].values, kind="stable")
    times, places = found["time_s"].values[order], np.maximum.accumulate(found[across.key].values[order])
    return [
        band._replace(
            start_s=float(np.interp(band.start_s, times, places)), end_s=float(np.interp(band.end_s, times, places))
        )
        for band in struck
    ]
