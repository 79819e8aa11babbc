"""Figures of one tab that looks at a tape: drawn in another thread, moved with the cursor, in the tab's theme."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any, NamedTuple

import panel as pn

from workbench.config import ConfigError
from workbench.pages import style
from workbench.pages.lane_choice import LaneChoice
from workbench.pages.looks import FUTURE, PAST
from workbench.pages.recording import Recording
from workbench.pages.site import Site
from workbench.tape import TapeError

COURSES: dict[str, dict[str, Any]] = {
    "loss": {"x": "time_s"}, "goodput": {}, "participation": {}, "contributions": {}, "staleness": {}, "step_times": {},
    "behind": {}, "waits": {}, "tokens": {}, "traffic": {}, "norms": {},
}  # fmt: skip
"""Figures of the whole run, with their options."""
OVER_TIME = {"loss", "goodput", "participation", "step_times", "behind", "waits", "tokens", "traffic", "norms"}
"""Those whose x axis is the time from the start of rounds: the cursor stands in them."""
THEMES = ("light", "dark")

LANES_S = 10.0
"""Of the run that the lanes show at once, unless one looks closer or from further away [s]."""
Reaches = list[tuple[int, float, float]]


class LaneView(NamedTuple):
    """What the lanes show: how much of the run [s], and which lanes in which order."""

    wide_s: float = LANES_S
    choice: LaneChoice = LaneChoice()


def window_s(recording: Recording, time_s: float, wide_s: float) -> tuple[float, float]:
    """What lanes of a width show around a time [s]: never more than there is."""
    last = float(recording.time_s.max(initial=0.0))
    low = max(0.0, min(time_s - wide_s / 2, last - wide_s))
    return low, min(low + wide_s, max(last, low + 1.0))


class Drawing:
    """Parameters
    ----------
    site : Site
    recording : Recording
    document : bokeh Document
    said : pane
        Where it is said that something cannot be drawn.
    theme : str
    chosen : function (start_s, end_s)
        Takes the part of the run that was dragged over in a figure.
    picked : function (name, x, y)
        Takes a place that was clicked in a figure.

    Attributes
    ----------
    theme : str
    words : pane
        What the figure shows, and its table.
    """

    grounds = (
        f'<p class="quiet">Ground of the lanes: <span style="border-left:12px solid {PAST}">&nbsp;past</span> of the '
        f'event (what it could know of), <span style="border-left:12px solid {FUTURE}">&nbsp;future</span> (what could '
        "know of it); where neither is, it is concurrent.</p>"
    )

    def __init__(
        self, site: Site, recording: Recording, document: Any, said: Any, theme: str,
        chosen: Callable[[float, float], None], picked: Callable[[str, float, float], None],
    ) -> None:  # fmt: skip
        self._site, self._recording, self._document, self._said = site, recording, document, said
        self.theme, self._name, self._time_s, self._told = theme, "", 0.0, (chosen, picked)
        self._view = LaneView()
        self._span_s: tuple[float, float] | None = None
        self._reaches: Reaches = []
        self._lanes: Any = None
        self._course: Any = None
        self._busy_lanes = self._stale_lanes = False
        self._tabled = False
        self.words = style.html("")
        self.lane_pane = pn.pane.Bokeh(None, sizing_mode="stretch_width", margin=0)
        self.course_pane = pn.pane.Bokeh(None, sizing_mode="stretch_width", margin=0)

    def wear(self, theme: str) -> None:
        """Draw everything anew in another theme."""
        if theme in THEMES and theme != self.theme:
            self.theme, self._stale_lanes = theme, True
            self.move(self._time_s, self._reaches, self._view, self._span_s)
            if self._name:
                self.draw_course(self._name)

    def move(self, time_s: float, reaches: Reaches, view: LaneView, span_s: tuple[float, float] | None) -> None:
        """Put the cursor somewhere else; lanes that do not reach so far are drawn anew."""
        self._time_s, self._reaches, self._view, self._span_s = time_s, reaches, view, span_s
        if self._course is not None:
            self._course.move(time_s, span_s)
        if self._lanes is not None and self._lanes.hold(time_s, view) and not self._stale_lanes:
            self._lanes.move(time_s, reaches, span_s)
        elif not self._busy_lanes:
            self._busy_lanes = True
            self._document.add_next_tick_callback(self._redraw_lanes)

    async def _redraw_lanes(self) -> None:
        from workbench.pages.replay_figures import Lanes

        loop = asyncio.get_running_loop()
        try:
            while self._lanes is None or self._stale_lanes or not self._lanes.hold(self._time_s, self._view):
                self._stale_lanes = False
                lanes = partial(Lanes, self._recording, self._time_s, self._view, self.theme, *self._told)
                self._lanes = await loop.run_in_executor(self._site.drawing, lanes)
                self._lanes.move(self._time_s, self._reaches, self._span_s)
                self.lane_pane.object = self._lanes.figure
        except (TapeError, ConfigError) as error:
            self._said.object = style.banner_html(str(error), bad=True)
        finally:
            self._busy_lanes = False

    def turn_table(self) -> None:
        """Show the figure's numbers as a table below it, or no more."""
        self._tabled = not self._tabled
        if self._course is not None:
            self._tell(self._name, self._course.figure)

    def _tell(self, name: str, figure: Any) -> None:
        from workbench.pages.figure_tables import caption, figure_table_html

        press = style.do("table", "table", "table: the numbers of this figure", pressed=self._tabled)
        region = 'class="scrolled" tabindex="0" role="region" aria-label="numbers of the figure"'
        table = f"<div {region}>{figure_table_html(figure)}</div>" if self._tabled else ""
        self.words.object = f'<p class="dos"><span>{escape(caption(name))}</span> {press}</p>{table}'

    def draw_course(self, name: str) -> None:
        """Draw a figure of the whole run."""
        self._name = name

        async def draw() -> None:
            from workbench.pages.replay_figures import Course

            loop = asyncio.get_running_loop()
            theme = self.theme
            try:
                making = partial(Course, self._recording, name, theme, *self._told)
                course = await loop.run_in_executor(self._site.drawing, making)
            except (TapeError, ConfigError) as error:
                self.course_pane.object = None
                self._said.object = style.banner_html(str(error), bad=True)
                return
            if (name, theme) == (self._name, self.theme):  # else another one was asked for meanwhile
                course.move(self._time_s, self._span_s)
                self._tell(name, course.figure)
                self._course, self.course_pane.object = course, course.figure

        self._document.add_next_tick_callback(draw)
