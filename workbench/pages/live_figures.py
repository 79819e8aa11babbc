"""Figures of a run that goes on: Bokeh figures whose column sources are streamed into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import panel as pn
from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, Range1d
from bokeh.models.annotations import BoxAnnotation
from bokeh.plotting import figure

from workbench.pages import style
from workbench.pages.courses import Course, Point
from workbench.pages.figure_words import FigureWords
from workbench.pages.replay_drawing import SMOOTHINGS
from workbench.pages.spans import WINDOW_S, Span, Spans
from workbench.protocol.records import SYNCER, process_of
from workbench.views.dressing import dress
from workbench.views.palette import BLUE, LIGHT, ORANGE, Theme
from workbench.views.smoothing import FAINT, Smoother

LOSS_SAID = "Loss of training, the mean over learners within their least and most, and on held-out text, as it comes."
LANE_HEIGHT, AROUND = 24, 70
MARGIN = 0.05
BOXES_MAX, BANDS_MAX = 1200, 60
"""Of the lanes: what a browser draws again at each tick."""


def time_label(began_s: float | None) -> str:
    """What an axis of time says: from the start of rounds, from that of the run while they have not begun."""
    return "time since the run began [s]" if began_s is None else "time since the start of rounds [s]"


class Following:
    """A range that follows the data until somebody zooms, and again after a reset.

    A range that fits itself in the browser stops for good when the server hands it back what it has just said.

    Attributes
    ----------
    range : Range1d
    """

    def __init__(self) -> None:
        self.range = Range1d(start=0.0, end=1.0)
        self._set = (0.0, 1.0)

    def follow(self, low: float, high: float) -> None:
        """Show these and what lies between them, with a margin, unless somebody looks at something else."""
        margin = MARGIN * (high - low or 1.0)
        start, end = low - margin, high + margin
        if (self.range.start, self.range.end) == self._set != (start, end):
            self._set = start, end
            self.range.update(start=start, end=end)
        self.range.update(reset_start=self._set[0], reset_end=self._set[1])


class LossFigure:
    """Training loss as a line within a band over learners, validation loss as points."""

    def __init__(self) -> None:
        self._began_s: float | None = None
        self._smoother = Smoother(0.0)
        self._line = ColumnDataSource({"time": [], "loss": [], "least": [], "most": [], "smooth": []})
        self._evals = ColumnDataSource({"time": [], "loss": []})
        self._drawn, self._evaluated, self._changes = 0, 0, -1
        plot = _plot("loss of training and validation", 230, "nat per byte")
        plot.varea("time", "least", "most", source=self._line, fill_color=BLUE, fill_alpha=0.18)
        raw = plot.line("time", "loss", source=self._line, color=BLUE, line_width=2, legend_label="training, mean")
        mean = plot.line("time", "smooth", source=self._line, color=BLUE, line_width=2, visible=False)
        plot.scatter("time", "loss", source=self._evals, color=ORANGE, size=7, legend_label="validation")
        plot.add_tools(HoverTool(tooltips=[("time", "@time{0.0} s"), ("loss", "@loss{0.000}")], mode="mouse"))
        plot.legend.orientation, plot.legend.location = "horizontal", "top_right"
        plot.legend.border_line_color, plot.legend.padding = None, 2
        self._plot, self._raw, self._mean = plot, raw, mean
        self._across, self._along = Following(), Following()
        self._fitted: tuple[Any, ...] = ()
        plot.x_range, plot.y_range = self._across.range, self._along.range
        self._words = FigureWords("loss")
        self.smoothing: Any = style.select(name="smoothing", options=SMOOTHINGS, value=-1, width=120, margin=0)
        self.smoothing.param.watch(lambda change: self._smooth(change.new), "value")
        self.pane = pn.pane.Bokeh(plot, sizing_mode="stretch_width", margin=0, visible=False)

    def parts(self) -> tuple[Any, ...]:
        """What stands in its card."""
        self._words.tell(LOSS_SAID, self._plot)
        return self.smoothing, self.pane, self._words.pane

    def wear(self, theme: Theme) -> None:
        """Take on a theme."""
        dress(self._plot, theme)

    def turn_table(self) -> None:
        """Show the numbers as a table as they are now, or no more."""
        self._words.turn()
        self._words.tell(LOSS_SAID, self._plot)

    def _smooth(self, percent: int) -> None:
        """Draw a moving average before the line; it is made anew with the next `update`."""
        is_on = percent > 0
        self._smoother, self._changes = Smoother(max(percent, 0) / 100), -1
        self._mean.visible, self._raw.glyph.line_alpha = is_on, FAINT if is_on else 1.0

    def update(self, course: Course, began_s: float | None) -> None:
        """Stream what is new; after a thinning, and when rounds begin, all is drawn again."""
        points, evals, origin_s = course.points, course.evaluations, began_s or 0.0
        if not self.pane.visible and points:
            self.pane.visible = True
        if (course.changes, began_s) != (self._changes, self._began_s):  # replaced and streamed it would be drawn twice
            self._changes, self._drawn, self._evaluated = course.changes, len(points), len(evals)
            self._began_s, self._plot.xaxis.axis_label = began_s, time_label(began_s)
            self._smoother = Smoother(self._smoother.smooth)
            self._line.data, self._evals.data = self._rows(points, origin_s), _dots(evals, origin_s)
        if len(points) > self._drawn:
            self._line.stream(self._rows(points[self._drawn :], origin_s))
            self._drawn = len(points)
        if len(evals) > self._evaluated:
            self._evals.stream(_dots(evals[self._evaluated :], origin_s))
            self._evaluated = len(evals)
        known = course.changes, len(points), len(evals), began_s
        if known != self._fitted:
            self._fitted = known
            self._fit(points, evals, origin_s)

    def _fit(self, points: list[Point], evals: list[Point], origin_s: float) -> None:
        """Let the axes follow what is drawn."""
        values = [v for p in (*points, *evals) for v in (p.least, p.loss, p.most) if v == v]
        if values:
            times = [p.time_s - origin_s for p in (*points[:1], *points[-1:], *evals[:1], *evals[-1:])]
            self._across.follow(min(times), max(times))
            self._along.follow(min(values), max(values))

    def _rows(self, points: list[Point], origin_s: float) -> dict[str, Any]:
        taken = [(point.loss, self._smoother.take(point.loss)) for point in points]
        means = [mean if loss == loss else loss for loss, mean in taken]
        around = {"least": [p.least for p in points], "most": [p.most for p in points]}
        return {**_dots(points, origin_s), **around, "smooth": means}


def _dots(points: list[Point], origin_s: float) -> dict[str, Any]:
    return {"time": [p.time_s - origin_s for p in points], "loss": [p.loss for p in points]}


class LaneFigure:
    """A lane for the syncer and for each learner; the last seconds.

    Parameters
    ----------
    rows : sequence of int
        Learners that have a lane, from top to bottom.
    began_s : float, optional
        The run's time at which rounds began, from which the axis counts; None before.

    Attributes
    ----------
    names : list of str
        Of the lanes, from bottom to top.
    """

    def __init__(self, rows: Sequence[int], began_s: float | None = None) -> None:
        self.rows, self.began_s = tuple(rows), began_s
        self._origin_s = began_s or 0.0
        self.names = ["syncer", *(f"L{m}" for m in rows)][::-1]
        names = ["syncer", *(f"L{m}" for m in rows)]
        self._lanes = len(names)
        processes = [SYNCER, *(process_of(m) for m in rows)]
        self._heights = {process: self._lanes - 1 - row for row, process in enumerate(processes)}
        self._source = ColumnDataSource(_columns([], [], 0.0))
        self._bands, self._lasting = (ColumnDataSource(_columns([], [], 0.0)) for _ in range(2))
        self._seen = 0
        height = AROUND + LANE_HEIGHT * self._lanes
        plot = _plot(f"what each process did in the last {WINDOW_S:.0f} s", height, "")
        plot.xaxis.axis_label = time_label(began_s)
        plot.x_range = self._range = Range1d(start=-WINDOW_S, end=0)
        plot.y_range = Range1d(start=-0.5, end=self._lanes - 0.5)
        plot.yaxis.ticker = FixedTicker(ticks=list(range(self._lanes)))
        plot.yaxis.major_label_overrides = {self._lanes - 1 - row: name for row, name in enumerate(names)}
        plot.ygrid.grid_line_color = None
        self._grounds = [
            BoxAnnotation(bottom=row - 0.5, top=row + 0.5, level="image", line_color=None)
            for row in range(0, self._lanes, 2)
        ]
        for ground in self._grounds:
            plot.add_layout(ground)
        for source in (self._bands, self._lasting, self._source):
            plot.quad(
                left="left", right="right", bottom="low", top="high", source=source, fill_color="colour",
                line_color="colour", fill_alpha="alpha", line_alpha="alpha",
            )  # fmt: skip
        self._written = [
            plot.text(
                x="left", y="middle", text="name", source=source, text_baseline="middle", x_offset=3,
                text_font_size="11px", text_font_style="bold",
            )
            for source in (self._bands, self._lasting)
        ]  # fmt: skip
        plot.add_tools(HoverTool(tooltips="@what, @left{0.00} to @right{0.00} s"))
        self._plot = plot
        self.wear(LIGHT)
        self.pane = pn.pane.Bokeh(plot, sizing_mode="stretch_width", margin=0)

    def wear(self, theme: Theme) -> None:
        """Take on a theme."""
        dress(self._plot, theme)
        for written in self._written:
            written.glyph.text_color = theme.text
        for ground in self._grounds:
            ground.fill_color = theme.grid
            ground.fill_alpha = 0.35

    def update(self, spans: Spans, now_s: float, unheard: dict[int, float]) -> None:
        """Stream what is new, draw what lasts up to now, and move on; ``unheard``: learners, and for how long [s]."""
        news = spans.tail.since(self._seen)
        self._seen = news.total
        for source, is_band, most in ((self._source, False, BOXES_MAX), (self._bands, True, BANDS_MAX)):
            shown, rows = self._shown([one for one in news.items if one.is_band == is_band])
            if shown:
                source.stream(_columns(shown, rows, self._origin_s), rollover=most)
        lasting = _columns(*self._shown(spans.lasting(now_s, unheard)), self._origin_s)
        if lasting["left"] or self._lasting.data["left"]:
            self._lasting.data = lasting
        end_s = now_s - self._origin_s
        self._range.update(start=end_s - WINDOW_S, end=end_s)

    def _shown(self, spans: Sequence[Span]) -> tuple[list[Span], list[int]]:
        """Those that have a lane, and which."""
        shown = [one for one in spans if self._row(one.process) >= 0]
        return shown, [self._row(one.process) for one in shown]

    def _row(self, process: int) -> int:
        """The syncer on top; -1 for processes without a lane."""
        return self._heights.get(process, -1)


def _columns(shown: Sequence[Span], rows: Sequence[int], origin_s: float) -> dict[str, Any]:
    return {
        "left": [one.start_s - origin_s for one in shown], "right": [one.end_s - origin_s for one in shown],
        "low": [row - one.height / 2 for row, one in zip(rows, shown, strict=True)],
        "high": [row + one.height / 2 for row, one in zip(rows, shown, strict=True)], "middle": list(rows),
        "what": [one.what for one in shown], "colour": [one.colour for one in shown],
        "alpha": [0.4 if one.is_band else 0.85 for one in shown], "name": [one.name for one in shown],
    }  # fmt: skip


def _plot(title: str, height: int, unit: str) -> Any:
    plot = figure(
        title=title, height=height, sizing_mode="stretch_width", x_axis_label=time_label(None), y_axis_label=unit,
        tools="xpan,xwheel_zoom,box_zoom,reset,save", active_drag=None, min_border_left=58,
        output_backend="canvas",
    )  # fmt: skip
    plot.toolbar.logo, plot.toolbar.autohide = None, True
    heading: Any = plot.title
    heading.text_font_style, heading.text_font_size = "bold", "13px"
    dress(plot, LIGHT)
    return plot
