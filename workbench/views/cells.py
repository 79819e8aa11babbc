"""What heatmaps and lanes share: a row for each learner, the first on top, and coloured cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import holoviews as hv
import numpy as np
from bokeh.models import BasicTicker, NumeralTickFormatter
from bokeh.models.glyph import Glyph

from workbench.analysis.arrays.tables import Array
from workbench.protocol.records import process_of
from workbench.views.frame import Axis
from workbench.views.palette import Theme

ROW_HEIGHT = 22
AROUND = 105
"""Height of a figure without its rows [pixels]."""


def rows_axis(labels: list[str]) -> Axis:
    """Rows of height 1, the first on top."""
    return Axis("rows", "", -0.5, max(len(labels), 1) - 0.5)


def rows_of(labels: list[str]) -> dict[int, float]:
    """Height of the row of each learner's process."""
    return {process_of(row): float(len(labels) - 1 - row) for row in range(len(labels))}


def row_options(labels: list[str]) -> dict[str, Any]:
    """Options of a figure with named rows."""
    ticks = [(len(labels) - 1 - row, label) for row, label in enumerate(labels)]
    return {"yticks": ticks or [(0, "")], "gridstyle": {"ygrid_line_alpha": 0}}


def height_of(rows: int) -> int:
    """Usual height of a figure with so many rows [pixels]."""
    return min(AROUND + ROW_HEIGHT * max(rows, 2), 900)


def grid(values: Array, x: Axis, low: float, high: float) -> hv.Image:
    """An image of (row, column), the first row on top, on low to high of the x axis; NaN shows the ground."""
    bounds = (low, -0.5, high, len(values) - 0.5)
    return hv.Image(np.asarray(values, float), [x.key, "rows"], ["value"], bounds=bounds)


def shaded(image: hv.Image, theme: Theme, high: float) -> hv.Image:
    """Colours from nothing to ``high``, with a scale beside the figure."""
    return image.opts(
        cmap=list(theme.ramp),
        clim=(0.0, high if high > 0 else 1.0),
        colorbar=True,
        clabel=" ",
        colorbar_opts={
            "width": 10, "padding": 4, "major_label_text_color": theme.text, "background_fill_color": theme.ground,
            "major_tick_line_color": theme.faint, "formatter": NumeralTickFormatter(format="0,0.[000]"),
            "ticker": BasicTicker(desired_num_ticks=4),
        },
        tools=["hover"],
        backend="bokeh",
    )  # fmt: skip


def hatched(theme: Theme) -> Callable[[Any, Any], None]:
    """A hook that hatches boxes: not by colour alone."""

    def hook(plot: Any, element: Any) -> None:
        renderer = plot.handles["glyph_renderer"]
        for glyph in (renderer.glyph, renderer.muted_glyph, renderer.nonselection_glyph, renderer.selection_glyph):
            if isinstance(glyph, Glyph):
                glyph.update(hatch_pattern="/", hatch_color=theme.text, hatch_alpha=0.5, hatch_scale=8, hatch_weight=1)

    return hook
