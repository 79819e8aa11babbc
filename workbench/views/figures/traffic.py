"""Bytes of contributions that reached the syncer."""

from __future__ import annotations

import holoviews as hv
import numpy as np

from workbench.analysis.arrays.tables import since_began
from workbench.tape.schema import MERGED
from workbench.views.frame import Look, axis, chart, time_axis
from workbench.views.palette import GREEN, ORANGE
from workbench.views.sources import Source, bands, known, span_s, tables

BINS = 60
UNITS = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))


def traffic(
    source: Source, *, bins: int = BINS, width: int | None = None, height: int | None = None, theme: str = "light"
) -> hv.Overlay:
    """Payload of FRAGMENT messages on the wire over time: of contributions that were merged, and of the others.

    Parameters
    ----------
    source : tape, run folder or run
    bins : int
        Parts of equal length into which the run is cut.
    width, height : int, optional
        [pixels]
    theme : str
        ``light`` or ``dark``.
    """
    look, found = Look.of(width, height, theme), tables(source, "traffic")
    rows = found["contributions"]
    here = (rows["arrival_ns"] >= 0) & (rows["bytes"] > 0)
    low, high = span_s(known(source)) or (0.0, 1.0)
    edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
    at, size, merged = since_began(found, rows["arrival_ns"]), rows["bytes"], rows["fate"] == MERGED
    rates = {
        name: np.histogram(at[mine], edges, weights=size[mine])[0] / np.diff(edges)
        for name, mine in (("merged", here & merged), ("not merged", here & ~merged))
    }
    scale, unit = _unit(max(float(rate.max(initial=0.0)) for rate in rates.values()))
    total = sum(rates.values()) / scale
    across, upward = time_axis(low, high), axis("bytes_per_s", f"contributions received [{unit}]", total, zero=True)
    floor, layers = np.zeros(bins), []
    for (name, rate), colour in zip(rates.items(), (GREEN, ORANGE), strict=True):
        if rate.any():
            top = floor + rate / scale
            boxes = hv.Rectangles(
                (edges[:-1], floor, edges[1:], top), [across.key, "low", "until", upward.key], [], label=name
            )
            layers.append(boxes.opts(color=colour, line_alpha=0, backend="bokeh"))
            floor = top
    whole, whole_unit = _unit(float(size[here].sum()))
    title = f"Contributions on the wire: {size[here].sum() / whole:,.3g} {whole_unit.removesuffix('/s')} in all"
    empty = "" if layers else "no contribution arrived"
    return chart(layers, look, title, (across, upward), bands(known(source)), empty=empty)


def _unit(most: float) -> tuple[float, str]:
    return next((unit for unit in UNITS if most >= unit[0]), UNITS[-1])
