"""Figures of one tab that looks at a tape: drawn in another thread, moved with the cursor, in the tab's theme."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import panel as pn

from workbench.config import ConfigError
from workbench.pages import style
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

Reaches = list[tuple[int, float, float]]


class Drawing:
    """Parameters
    ----------
    site : Site
    recording : Recording
    document : bokeh Document
    said : pane
        Where it is said that something cannot be drawn.

    Attributes
    ----------
    theme : str
    """

    grounds = (
        f'<p class="quiet">Ground of the lanes: <span style="border-left:12px solid {PAST}">&nbsp;past</span> of the '
        f'event (what it could know of), <span style="border-left:12px solid {FUTURE}">&nbsp;future</span> (what could '
        "know of it); where neither is, it is concurrent.</p>"
    )

    def __init__(self, site: Site, recording: Recording, document: Any, said: Any, theme: str) -> None:
        self._site, self._recording, self._document, self._said = site, recording, document, said
        self.theme, self._name, self._time_s = theme, "", 0.0
        self._reaches: Reaches = []
        self._lanes: Any = None
        self._course: Any = None
        self._busy_lanes = self._stale_lanes = False
        self.lane_pane = pn.pane.Bokeh(None, sizing_mode="stretch_width", margin=0)
        self.course_pane = pn.pane.Bokeh(None, sizing_mode="stretch_width", margin=0)

    def wear(self, theme: str) -> None:
        """Draw everything anew in another theme."""
        if theme in THEMES and theme != self.theme:
            self.theme, self._stale_lanes = theme, True
            self.move(self._time_s, self._reaches)
            if self._name:
                self.draw_course(self._name)

    def move(self, time_s: float, reaches: Reaches) -> None:
        """Put the cursor somewhere else; lanes that do not reach so far are drawn anew."""
        self._time_s, self._reaches = time_s, reaches
        if self._course is not None:
            self._course.move(time_s)
        if self._lanes is not None and self._lanes.hold(time_s) and not self._stale_lanes:
            self._lanes.move(time_s, reaches)
        elif not self._busy_lanes:
            self._busy_lanes = True
            self._document.add_next_tick_callback(self._redraw_lanes)

    async def _redraw_lanes(self) -> None:
        from workbench.pages.replay_figures import Lanes

        loop = asyncio.get_running_loop()
        try:
            while self._lanes is None or self._stale_lanes or not self._lanes.hold(self._time_s):
                self._stale_lanes = False
                lanes = partial(Lanes, self._recording, self._time_s, self.theme)
                self._lanes = await loop.run_in_executor(self._site.drawing, lanes)
                self._lanes.move(self._time_s, self._reaches)
                self.lane_pane.object = self._lanes.figure
        except (TapeError, ConfigError) as error:
            self._said.object = style.banner_html(str(error), bad=True)
        finally:
            self._busy_lanes = False

    def draw_course(self, name: str) -> None:
        """Draw a figure of the whole run."""
        self._name = name

        async def draw() -> None:
            from workbench.pages.replay_figures import Course

            loop = asyncio.get_running_loop()
            theme = self.theme
            try:
                course = await loop.run_in_executor(self._site.drawing, partial(Course, self._recording, name, theme))
            except (TapeError, ConfigError) as error:
                self.course_pane.object = None
                self._said.object = style.banner_html(str(error), bad=True)
                return
            if (name, theme) == (self._name, self.theme):  # else another one was asked for meanwhile
                course.move(self._time_s)
                self._course, self.course_pane.object = course, course.figure

        self._document.add_next_tick_callback(draw)
