"""What all figures share: size, theme, axes with units, fault bands behind the data, a word where nothing is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import holoviews as hv
import numpy as np
from bokeh.document import Document
from bokeh.models import BasicTickFormatter, Node, NumeralTickFormatter
from bokeh.models.annotations import Label

from workbench.views.dressing import dress
from workbench.views.palette import VERMILLION, Theme, theme_of
from workbench.views.sources import Band

HEIGHT = 260
PLAIN_LOW, PLAIN_HIGH = 0.05, 1e4
"""Axes whose largest number lies between these have the usual ticks."""
NAMES_MAX = 16
"""Fault bands that are named one by one; of more only the colour is shown."""
LINES_MAX, LINE_HEIGHT, LETTER_WIDTH = 3, 12, 6
"""Lines of names above the data; their height, and the width of a letter [pixels]."""
LEFT, RIGHT, NAMES_WIDTH, AROUND, USUAL_WIDTH = 66, 175, 100, 85, 640
"""Room beside the data, so that figures below each other have their axes in line; above and below it [pixels]."""
TOOLS = ["xpan", "xwheel_zoom", "box_zoom", "reset", "save"]

if not hv.extension._loaded:  # a notebook shows figures from now on, without a network too
    hv.extension("bokeh", inline=True, logo=False)


class Look(NamedTuple):
    """Size [pixels] and theme of a figure; without a width it takes the room that there is."""

    width: int | None
    height: int
    theme: Theme

    @classmethod
    def of(cls, width: int | None, height: int | None, theme: str, usual: int = HEIGHT) -> Look:
        """What a figure was asked to look like."""
        return cls(width, usual if height is None else height, theme_of(theme))


class Axis(NamedTuple):
    """An axis: its name with the unit, its range, and whether it is logarithmic.

    Attributes
    ----------
    key : str
        Axes of one key move together in a layout.
    """

    key: str
    label: str
    low: float
    high: float
    log: bool = False

    def formatter(self) -> dict[str, Any]:
        """Options for ticks: large counts have their thousands apart, small numbers their zeros as long as few."""
        most = max(abs(self.low), abs(self.high))
        if self.log or PLAIN_LOW <= most < PLAIN_HIGH:
            return {}
        if most >= PLAIN_HIGH:
            return {"": NumeralTickFormatter(format="0,0")}
        return {"": BasicTickFormatter(power_limit_low=-6)}


def time_axis(low: float, high: float) -> Axis:
    """Time from the start of rounds [s]."""
    low, high = padded(low, high, 0.0)
    return Axis("time_s", "time since the start of rounds [s]", low, high)


def axis(key: str, label: str, values: Any, *, zero: bool = False, log: bool = False, room: float = 0.05) -> Axis:
    """An axis that holds some values with a little room, whatever they are: none, one, all the same, not finite."""
    found = np.asarray(values, float).ravel()
    found = found[np.isfinite(found) & ((found > 0) | (not log))]
    if not len(found):
        return Axis(key, label, *((0.1, 10.0) if log else (0.0, 1.0)), log)
    low, high = float(found.min()), float(found.max())
    if log:
        return Axis(key, label, low / (1.2 if high > low else 2.0), high * (1.2 if high > low else 2.0), log)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
        high = high if high > low else low + 1.0
        return Axis(key, label, low, high + room * (high - low))
    return Axis(key, label, *padded(low, high, room))


def padded(low: float, high: float, room: float = 0.05) -> tuple[float, float]:
    """A range with some room at both ends; one that is a point gets a tenth of its value."""
    if high > low:
        return low - room * (high - low), high + room * (high - low)
    half = 0.1 * abs(low) or 0.5
    return low - half, high + half


def chart(
    layers: Sequence[hv.Element],
    look: Look,
    title: str,
    axes: tuple[Axis, Axis],
    bands: Sequence[Band] = (),
    *,
    empty: str = "",
    legend: bool = True,
    rows: Mapping[int, float] | None = None,
    more: dict[str, Any] | None = None,
) -> hv.Overlay:
    """Put a figure together.

    Parameters
    ----------
    layers : sequence of hv.Element
        From back to front.
    look : Look
    title : str
    axes : (Axis, Axis)
        x and y.
    bands : sequence of Band
        Faults, drawn behind everything; positions on the x axis.
    empty : str
        What to say where there is no data; "" if there is.
    legend : bool
        Whether layers are named beside the figure.
    rows : mapping of int to float, optional
        Heights of the rows of processes, each 1 high: faults of these are drawn there alone.
    more : dict, optional
        Other options of the whole.
    """
    x, y = axes
    lines = _lines(bands, x, look)
    y = _with_room(y, look, max(lines, default=-1) + 1)
    behind = _grounds(bands, axes, look.theme, rows or {})
    said = [_said(empty, x, y, look.theme)] if empty else []
    whole = hv.Overlay([*behind, *layers, *said])
    size = {"width": look.width} if look.width else {"responsive": True, "min_width": 320}
    options: dict[str, Any] = {
        **size,
        "height": look.height,
        "title": title,
        "xlabel": x.label,
        "ylabel": y.label,
        "xlim": (x.low, x.high),
        "ylim": (y.low, y.high),
        "logy": y.log,
        "show_legend": legend,
        "legend_position": "right",
        "legend_opts": {"click_policy": "hide"},
        "default_tools": TOOLS,
        "active_tools": ["xpan"],
        "fontsize": {"title": 11, "labels": 9, "ticks": 9, "legend": 9},
        **{f"xformatter{key}": value for key, value in x.formatter().items()},
        **{f"yformatter{key}": value for key, value in y.formatter().items()},
        "hooks": [_themed(look.theme), _named(bands, lines, look.theme)],
        "backend": "bokeh",
        **(more or {}),
    }
    return whole.opts(hv.opts.Overlay(**options))


def rendered(figure: Any) -> Any:
    """The Bokeh figure, which no document keeps: HoloViews would leave it with that of the whole process."""
    plot = hv.renderer("bokeh").get_plot(figure)
    plot.document = Document()
    return plot.state


def dims(x: Axis, y: Axis, *more: str) -> tuple[list[hv.Dimension], list[hv.Dimension]]:
    """Dimensions of a layer on two axes, and of other values for those who hover."""
    return [hv.Dimension(x.key, label=x.label)], [hv.Dimension(y.key, label=y.label), *map(hv.Dimension, more)]


def _grounds(bands: Sequence[Band], axes: tuple[Axis, Axis], theme: Theme, rows: Mapping[int, float]) -> list[Any]:
    """Faint bands, of processes with a row in that row alone; one that acts once is as wide as can be seen."""
    x, y = axes
    least = 0.002 * (x.high - x.low)
    strength = 0.12 if theme.name == "light" else 0.2
    style = {"color": VERMILLION, "alpha": strength, "line_alpha": 0, "apply_ranges": False, "backend": "bokeh"}
    wide = [(one.start_s, max(one.end_s, one.start_s + least), one) for one in bands]
    through = [(low, high, one.name) for low, high, one in wide if one.process not in rows]
    spans = hv.VSpans(through, [f"{x.key}_from", f"{x.key}_to"], "fault").opts(**style)
    boxes = [
        (low, rows[one.process] - 0.5, high, rows[one.process] + 0.5, one.name)
        for low, high, one in wide
        if one.process in rows
    ]
    keys = [f"{x.key}_from", f"{y.key}_from", f"{x.key}_to", f"{y.key}_to"]
    return [spans, hv.Rectangles(boxes, keys, "fault").opts(**style)] if boxes else [spans]


def _said(text: str, x: Axis, y: Axis, theme: Theme) -> hv.Labels:
    middle = (x.low * y.low) ** 0.5 if y.log else (y.low + y.high) / 2
    middle = (y.low * y.high) ** 0.5 if y.log else middle
    label = hv.Labels([((x.low + x.high) / 2, middle, text)], [x.key, y.key], "text")
    return label.opts(text_color=theme.faint, text_font_size="11pt", backend="bokeh")


def _themed(theme: Theme) -> Callable[[Any, Any], None]:
    """Give a figure the colours of a theme: of this figure alone, not of all there are."""

    def hook(plot: Any, element: Any) -> None:
        figure = plot.state
        dress(figure, theme)
        if figure.title is not None:
            figure.title.text_font_style = "normal"
        for legend in figure.legend:
            legend.padding, legend.spacing = 0, 1
            if legend in figure.right:
                legend.location, legend.label_width = "top_left", NAMES_WIDTH
        figure.min_border_left, figure.min_border_right = LEFT, RIGHT
        figure.toolbar.autohide = True
        figure.toolbar.logo = None

    return hook


def _lines(bands: Sequence[Band], x: Axis, look: Look) -> list[int]:
    """Line of each fault's name, -1 for one that has no room; none where there are too many."""
    if len(bands) > NAMES_MAX:
        return []
    letter = (x.high - x.low) * LETTER_WIDTH / max((look.width or USUAL_WIDTH) - LEFT - RIGHT, 100)
    reach = [-np.inf] * LINES_MAX
    lines = []
    for band in bands:
        line = next((n for n, end in enumerate(reach) if band.start_s > end), -1)
        if line >= 0:
            reach[line] = band.start_s + letter * (len(band.name) + 1)
        lines.append(line)
    return lines


def _with_room(y: Axis, look: Look, lines: int) -> Axis:
    """An axis with room above for so many lines of names."""
    part = min(0.5, lines * LINE_HEIGHT / max(look.height - AROUND, 50))
    if y.log:
        return y._replace(high=y.high * (y.high / y.low) ** (part / (1 - part)))
    return y._replace(high=y.high + (y.high - y.low) * part / (1 - part))


def _named(bands: Sequence[Band], lines: Sequence[int], theme: Theme) -> Callable[[Any, Any], None]:
    """Write the names of faults at the upper edge."""

    def hook(plot: Any, element: Any) -> None:
        for band, line in zip(bands if lines else (), lines, strict=True):
            if line < 0:
                continue
            name = Label(x=band.start_s, y=Node(target="frame", symbol="top", offset=2 + LINE_HEIGHT * line))
            name.update(text=band.name, text_baseline="top", text_color=theme.text, text_font_size="8pt", x_offset=2)
            plot.state.add_layout(name)

    return hook
