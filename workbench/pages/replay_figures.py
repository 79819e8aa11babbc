"""Figures of a tape with a cursor: lanes around it, with its causal past and future, and courses of the whole run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from bokeh.events import SelectionGeometry, Tap
from bokeh.models import BoxSelectTool, ColumnDataSource
from bokeh.models.annotations import Arrow, BoxAnnotation, Span, VeeHead

from workbench import views
from workbench.analysis.from_tape import tables_of
from workbench.pages.recording import Recording
from workbench.pages.replay_drawing import COURSES, OVER_TIME, SMOOTHED, Cone, LaneView, window_s
from workbench.protocol.records import FIRST_LEARNER, SYNCER, label_of
from workbench.views import frame
from workbench.views.gaps import NONE, idle_gaps
from workbench.views.lanes import Window
from workbench.views.palette import BLUE, GREEN, YELLOW, theme_of

IDLE_S = 0.5
"""So long nobody does anything before that is drawn narrow, if one wants that [s]."""
HEIGHT = 230
EDGE = 0.1
"""Part of the lanes at each end where the cursor makes them move on."""
__all__ = ["Course", "Lanes", "cursor", "frame", "rendered"]  # the import of frame loads the backend

Chosen = Callable[[float, float], None]
"""Takes the part of the run that was dragged over [s]."""
Picked = Callable[[str, float, float], None]
"""Takes a place that was clicked: the figure's name, and where on its axes; of lanes the process for the height."""


class OverTime:
    """A figure over time: its cursor, and the part of the run that is chosen.

    Parameters
    ----------
    figure : bokeh figure
    theme : str
    chosen : function (start_s, end_s)
    """

    def __init__(self, figure: Any, theme: str, chosen: Chosen) -> None:
        self._cursor = cursor(figure, theme)
        self._range = BoxAnnotation(
            left=0.0, right=0.0, fill_color=YELLOW, fill_alpha=0.18, line_color=YELLOW, level="underlay", visible=False,
        )  # fmt: skip
        figure.add_layout(self._range)
        figure.add_tools(BoxSelectTool(dimensions="width", renderers=[], description="choose a part of the run"))
        figure.on_event(SelectionGeometry, partial(_selected, chosen))

    def move(self, time_s: float) -> None:
        """Put the cursor somewhere else."""
        self._cursor.location = time_s

    def mark(self, span_s: tuple[float, float] | None) -> None:
        """Show which part is chosen."""
        left, right = span_s or (0.0, 0.0)
        self._range.update(left=left, right=right, visible=span_s is not None)


def _selected(chosen: Chosen, event: Any) -> None:
    told = event.geometry
    if event.final and told.get("type") == "rect":
        chosen(*sorted((float(told["x0"]), float(told["x1"]))))


def rendered(tape: xr.DataTree, name: str, theme: str, smooth: int = -1, **options: Any) -> Any:
    """A figure of a whole run as Bokeh draws it, smoothed by so many percent.  Waits: it takes up to seconds."""
    if name in COURSES:
        options = {"height": HEIGHT, **COURSES[name], **options}
    if smooth > 0 and name in SMOOTHED:
        options["smooth"] = smooth / 100
    return frame.rendered(getattr(views, name)(tape, theme=theme, **options))


class Course:
    """One figure of the whole run.  Waits: drawing takes up to seconds.

    Parameters
    ----------
    recording : Recording
    name : str
        One of `COURSES`.
    theme : str
    chosen : function (start_s, end_s)
    picked : function (name, x, y)
    smooth : int
        Percent, -1 for none.

    Attributes
    ----------
    figure : bokeh figure
    over_time : OverTime or None
        None for a figure over something else.
    """

    def __init__(
        self, recording: Recording, name: str, theme: str, chosen: Chosen, picked: Picked, smooth: int = -1
    ) -> None:  # fmt: skip
        self.figure = rendered(recording.tape, name, theme, smooth)
        if not self.figure.right:
            self.figure.min_border_right = 16
        self.over_time = OverTime(self.figure, theme, chosen) if name in OVER_TIME else None
        self.figure.on_event(Tap, lambda event: picked(name, float(event.x), float(event.y)))

    def move(self, time_s: float, span_s: tuple[float, float] | None) -> None:
        """Put the cursor somewhere else."""
        if self.over_time is not None:
            self.over_time.move(time_s)
            self.over_time.mark(span_s)


class Lanes:
    """Lanes of the processes around a time, and who knows of whom at the cursor.  Waits, as `Course`.

    Parameters
    ----------
    recording : Recording
    time_s : float
    view : LaneView
    theme : str
    chosen : function (start_s, end_s)
    picked : function (name, x, y)

    Attributes
    ----------
    figure : bokeh figure
    low, high : float
        What is shown [s from the start of rounds].
    names : list of str
        Of the lanes, from bottom to top.
    """

    def __init__(
        self, recording: Recording, time_s: float, view: LaneView, theme: str, chosen: Chosen, picked: Picked
    ) -> None:
        self._picked = picked
        self._view, self._last = view, float(recording.time_s.max(initial=0.0))
        self.low, self.high = window_s(recording, time_s, view.wide_s)
        self._rows = view.choice.rows(recording.tape.wb.learners)
        collapse_s = IDLE_S if view.choice.collapsed else None
        lanes = views.swimlanes(
            recording.tape, start_s=self.low, end_s=self.high, learners=self._rows, collapse_s=collapse_s, theme=theme
        )
        self._gaps = NONE
        if collapse_s is not None:
            window = Window(self.low, self.high, self._rows, theme_of(theme))
            self._gaps = idle_gaps(tables_of(recording.tape), window, collapse_s)
        self.figure = frame.rendered(lanes)
        self._ground = ColumnDataSource({name: [] for name in ("left", "right", "low", "high", "colour")})
        self.figure.quad(
            left="left", right="right", bottom="low", top="high", source=self._ground, fill_color="colour",
            fill_alpha=0.16, line_alpha=0, level="underlay",
        )  # fmt: skip
        self._arrows = [_arrows_on(self.figure, colour) for colour in (theme_of(theme).text, GREEN)]
        self.names = [label_of(process) for process in reversed(self._processes())]
        self._over_time = OverTime(self.figure, theme, self._selected(chosen))
        self.figure.on_event(Tap, self._tapped)

    def _selected(self, chosen: Chosen) -> Chosen:
        """Takes places in the picture."""
        return lambda low, high: chosen(self._gaps.meant(low), self._gaps.meant(high))

    def _tapped(self, event: Any) -> None:
        processes, lane = self._processes(), round(float(event.y))
        if 0 <= lane < len(processes):
            self._picked("swimlanes", self._gaps.meant(float(event.x)), processes[len(processes) - 1 - lane])

    def hold(self, time_s: float, view: LaneView) -> bool:
        """Whether the cursor may stand there without lanes being drawn anew."""
        room = EDGE * (self.high - self.low)
        after = self.low + room <= time_s or self.low <= 0.0
        before = time_s <= self.high - room or self.high >= self._last
        return after and before and view == self._view

    def move(self, time_s: float, cone: Cone, span_s: tuple[float, float] | None) -> None:
        """Put the cursor somewhere else."""
        shown = self._gaps.shown
        self._over_time.move(shown(time_s))
        self._over_time.mark(None if span_s is None else (shown(span_s[0]), shown(span_s[1])))
        heights = {process: lane for lane, process in enumerate(reversed(self._processes()))}
        self._paint(cone, heights)
        for is_future, source in enumerate(self._arrows):
            inside = [
                (shown(a_s), heights[a], shown(b_s), heights[b])
                for a_s, a, b_s, b, future in cone.arrows
                if future == bool(is_future) and a in heights and b in heights
            ]
            source.data = dict(zip(ENDS, map(list, zip(*inside, strict=True)), strict=True)) if inside else NO_ENDS

    def _paint(self, cone: Cone, heights: dict[int, int]) -> None:
        """Grounds of past and future."""
        shown, ground = self._gaps.shown, {name: list[Any]() for name in ("left", "right", "low", "high", "colour")}
        for process, past_s, future_s in cone.reaches:
            if process not in heights:
                continue
            lane = heights[process]
            for left, right, colour in ((self.low, past_s, BLUE), (future_s, self.high, GREEN)):
                left, right = float(np.clip(left, self.low, self.high)), float(np.clip(right, self.low, self.high))
                if right > left:
                    row = (shown(left), shown(right), lane - 0.48, lane + 0.48, colour)
                    for column, value in zip(ground.values(), row, strict=True):
                        column.append(value)
        self._ground.data = ground

    def _processes(self) -> list[int]:
        """From top to bottom."""
        return [SYNCER, *(FIRST_LEARNER + m for m in self._rows)]


ENDS = ("x_start", "y_start", "x_end", "y_end")
NO_ENDS: dict[str, list[float]] = {name: [] for name in ENDS}


def _arrows_on(figure: Any, colour: str) -> ColumnDataSource:
    """Arrows of a colour, at what the source holds."""
    source = ColumnDataSource(NO_ENDS)
    made: Any = Arrow(source=source, x_start="x_start", y_start="y_start", x_end="x_end", y_end="y_end")
    made.update(end=VeeHead(size=9, line_color=colour, fill_color=colour), line_color=colour, line_width=2)
    figure.add_layout(made)
    return source


def cursor(figure: Any, theme: str) -> Span:
    """A vertical line that moves."""
    span = Span(location=0.0, dimension="height", line_color=theme_of(theme).text, line_width=1.5, line_dash="solid")
    figure.add_layout(span)
    return span
