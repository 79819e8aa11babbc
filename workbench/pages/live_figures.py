"""Figures of a run that goes on: Bokeh figures whose column sources are streamed into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import panel as pn
from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, Range1d
from bokeh.models.annotations import BoxAnnotation
from bokeh.plotting import figure

from workbench.pages.courses import Course, Point
from workbench.pages.spans import WINDOW_S, Spans
from workbench.protocol.records import SYNCER, process_of
from workbench.views.dressing import dress
from workbench.views.palette import BLUE, LIGHT, ORANGE, Theme

LANE_HEIGHT, AROUND = 24, 70
BOXES_MAX, NAMES_MAX = 1200, 60
"""Of the lanes: what a browser draws again at each tick."""
TIME = "time since the run began [s]"


class LossFigure:
    """Training loss as a line within a band over learners, validation loss as points."""

    def __init__(self) -> None:
        self._line = ColumnDataSource({"time": [], "loss": [], "least": [], "most": []})
        self._evals = ColumnDataSource({"time": [], "loss": []})
        self._drawn, self._evaluated, self._changes = 0, 0, -1
        plot = _plot("loss of training and validation", 230, "nat per byte")
        plot.varea("time", "least", "most", source=self._line, fill_color=BLUE, fill_alpha=0.18)
        plot.line("time", "loss", source=self._line, color=BLUE, line_width=2, legend_label="training, mean")
        plot.scatter("time", "loss", source=self._evals, color=ORANGE, size=7, legend_label="validation")
        plot.add_tools(HoverTool(tooltips=[("time", "@time{0.0} s"), ("loss", "@loss{0.000}")], mode="mouse"))
        plot.legend.orientation, plot.legend.location = "horizontal", "top_right"
        plot.legend.border_line_color, plot.legend.padding = None, 2
        self._plot = plot
        self.pane = pn.pane.Bokeh(plot, sizing_mode="stretch_width", margin=0, visible=False)

    def wear(self, theme: Theme) -> None:
        """Take on a theme."""
        dress(self._plot, theme)

    def update(self, course: Course) -> None:
        """Stream what is new; after a thinning all is drawn again."""
        points, evals = course.points, course.evaluations
        if not self.pane.visible and points:
            self.pane.visible = True
        if course.changes != self._changes:  # replacing and streaming in one turn would draw twice
            self._changes, self._drawn, self._evaluated = course.changes, len(points), len(evals)
            self._line.data, self._evals.data = _line(points), _dots(evals)
        if len(points) > self._drawn:
            self._line.stream(_line(points[self._drawn :]))
            self._drawn = len(points)
        if len(evals) > self._evaluated:
            self._evals.stream(_dots(evals[self._evaluated :]))
            self._evaluated = len(evals)


def _line(points: list[Point]) -> dict[str, Any]:
    return {
        "time": [p.time_s for p in points], "loss": [p.loss for p in points],
        "least": [p.least for p in points], "most": [p.most for p in points],
    }  # fmt: skip


def _dots(points: list[Point]) -> dict[str, Any]:
    return {"time": [p.time_s for p in points], "loss": [p.loss for p in points]}


class LaneFigure:
    """A lane for the syncer and for each learner; the last seconds.

    Parameters
    ----------
    rows : sequence of int
        Learners that have a lane, from top to bottom.
    """

    def __init__(self, rows: Sequence[int]) -> None:
        self.rows = tuple(rows)
        names = ["syncer", *(f"L{m}" for m in rows)]
        self._lanes = len(names)
        processes = [SYNCER, *(process_of(m) for m in rows)]
        self._heights = {process: self._lanes - 1 - row for row, process in enumerate(processes)}
        self._source = ColumnDataSource(
            {name: [] for name in ("left", "right", "low", "high", "what", "colour", "alpha")}
        )
        self._names = ColumnDataSource({"left": [], "middle": [], "name": []})
        self._seen = 0
        height = AROUND + LANE_HEIGHT * self._lanes
        plot = _plot(f"what each process did in the last {WINDOW_S:.0f} s (blank: idle)", height, "")
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
        plot.quad(
            left="left", right="right", bottom="low", top="high", source=self._source, fill_color="colour",
            line_color="colour", fill_alpha="alpha", line_alpha="alpha",
        )  # fmt: skip
        self._written = plot.text(
            x="left", y="middle", text="name", source=self._names, text_baseline="middle", x_offset=3,
            text_font_size="11px", text_font_style="bold",
        )  # fmt: skip
        plot.add_tools(HoverTool(tooltips="@what, @left{0.00} to @right{0.00} s"))
        self._plot = plot
        self.wear(LIGHT)
        self.pane = pn.pane.Bokeh(plot, sizing_mode="stretch_width", margin=0)

    def wear(self, theme: Theme) -> None:
        """Take on a theme."""
        dress(self._plot, theme)
        self._written.glyph.text_color = theme.text
        for ground in self._grounds:
            ground.fill_color = theme.grid
            ground.fill_alpha = 0.35

    def update(self, spans: Spans, now_s: float) -> None:
        """Stream what is new, and move on."""
        news = spans.tail.since(self._seen)
        self._seen = news.total
        shown = [one for one in news.items if self._row(one.process) >= 0]
        if shown:
            rows = [self._row(one.process) for one in shown]
            self._source.stream({
                "left": [one.start_s for one in shown], "right": [one.end_s for one in shown],
                "low": [row - one.height / 2 for row, one in zip(rows, shown, strict=True)],
                "high": [row + one.height / 2 for row, one in zip(rows, shown, strict=True)],
                "what": [one.what for one in shown], "colour": [one.colour for one in shown],
                "alpha": [0.4 if one.name else 0.85 for one in shown],
            }, rollover=BOXES_MAX)  # fmt: skip
            named = [(one, row) for one, row in zip(shown, rows, strict=True) if one.name]
            if named:
                self._names.stream({
                    "left": [one.start_s for one, _ in named], "middle": [row for _, row in named],
                    "name": [one.name for one, _ in named],
                }, rollover=NAMES_MAX)  # fmt: skip
        self._range.update(start=now_s - WINDOW_S, end=now_s)

    def _row(self, process: int) -> int:
        """The syncer on top; -1 for processes without a lane."""
        return self._heights.get(process, -1)


def _plot(title: str, height: int, unit: str) -> Any:
    plot = figure(
        title=title, height=height, sizing_mode="stretch_width", x_axis_label=TIME, y_axis_label=unit,
        tools="xpan,xwheel_zoom,box_zoom,reset,save", active_drag=None, min_border_left=58,
        output_backend="canvas",
    )  # fmt: skip
    plot.toolbar.logo, plot.toolbar.autohide = None, True
    heading: Any = plot.title
    heading.text_font_style, heading.text_font_size = "bold", "13px"
    dress(plot, LIGHT)
    return plot
