"""Figures of one tab that looks at a tape: drawn in another thread, moved with the cursor, in the tab's theme."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import panel as pn

from workbench.config import ConfigError
from workbench.pages import style
from workbench.pages.figure_words import FigureWords
from workbench.pages.lane_choice import LaneChoice
from workbench.pages.looks import FUTURE, PAST
from workbench.pages.recording import Look, Recording
from workbench.pages.site import Site
from workbench.tape import TapeError
from workbench.tape.causal_order import ARROWS_MAX

COURSES: dict[str, dict[str, Any]] = {
    "loss": {"x": "time_s"}, "goodput": {}, "participation": {}, "contributions": {}, "staleness": {}, "step_times": {},
    "behind": {}, "waits": {}, "tokens": {}, "traffic": {}, "norms": {},
}  # fmt: skip
"""Figures of the whole run, with their options."""
OVER_TIME = {"loss", "goodput", "participation", "step_times", "behind", "waits", "tokens", "traffic", "norms"}
"""Those whose x axis is the time from the start of rounds: the cursor stands in them."""
SMOOTHED = ("loss", "step_times", "norms")
"""Those whose lines can be smoothed."""
SMOOTHINGS = {"none": -1, "a little": 60, "more": 90, "much": 97}
"""How much, in words and in percent."""
THEMES = ("light", "dark")

LANES_S = 10.0
"""Of the run that the lanes show at once, unless one looks closer or from further away [s]."""
WORDED = ("lanes", "figure")
"""Figures of the page that have words and a table."""
DEPTHS = {"past and future hidden": 0, "direct": -1, "2 deep": 2, "3 deep": 3, "4 deep": 4, "6 deep": 6}
"""How far arrows go, in words and as an address says it."""
LANES_SAID = "What each process did around the cursor: boxes are inner steps, white is idle, hatched was not merged."


class Cone(NamedTuple):
    """Past and future of an event, as the lanes show them.

    Attributes
    ----------
    reaches : list of (int, float, float)
        By process: until when its own events are in the past, and from when on in the future [s].
    arrows : list of (float, int, float, int, bool)
        From time [s] and process to time and process, whether it is in the future.
    said : str
        What the arrows are, in words.
    """

    reaches: Sequence[tuple[int, float, float]] = ()
    arrows: Sequence[tuple[float, int, float, int, bool]] = ()
    said: str = ""


def cone_of(recording: Recording, look: Look, deep: int) -> Cone:
    """What lanes show of the past and future of a look's event; nothing if ``deep`` is 0."""
    if deep == 0:
        return Cone()
    times, processes = recording.time_s, recording.column("process")
    ends = [
        (float(times[one.cause]), int(processes[one.cause]), float(times[one.effect]), int(processes[one.effect]),
         one.depth > 0)
        for one in look.arrows
    ]  # fmt: skip
    more = f" The nearest {len(ends)}; there are more." if len(ends) >= ARROWS_MAX else ""
    far = "directly" if deep == 1 else f"in up to {deep} steps"
    return Cone(look.lanes, ends, f"Arrows: what it follows from, and what follows from it, {far}.{more}")


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
    words, lane_words : FigureWords
        What figure and lanes show, and their tables.
    arrows_said : pane
        What the arrows in the lanes are.
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
        self._view, self._smooth = LaneView(), -1
        self._span_s: tuple[float, float] | None = None
        self._cone, self._asked = Cone(), ("", -1, "")
        self._lanes: Any = None
        self._course: Any = None
        self._busy_lanes = self._stale_lanes = False
        self.words, self.lane_words, self.arrows_said = FigureWords("figure"), FigureWords("lanes"), style.html("")
        self.lane_pane = pn.pane.Bokeh(None, sizing_mode="stretch_width", margin=0)
        self.course_pane = pn.pane.Bokeh(None, sizing_mode="stretch_width", margin=0)

    def wear(self, theme: str) -> None:
        """Draw everything anew in another theme."""
        if theme in THEMES and theme != self.theme:
            self.theme, self._stale_lanes = theme, True
            self.move(self._time_s, self._cone, self._view, self._span_s)
            if self._name:
                self.draw_course(self._name, self._smooth)

    def move(self, time_s: float, cone: Cone, view: LaneView, span_s: tuple[float, float] | None) -> None:
        """Put the cursor somewhere else; lanes that do not reach so far are drawn anew."""
        self._time_s, self._cone, self._view, self._span_s = time_s, cone, view, span_s
        said = f"{self.grounds}<p class='quiet'>{cone.said}</p>" if cone.said else ""
        if self.arrows_said.object != said:
            self.arrows_said.object = said
        if self._course is not None:
            self._course.move(time_s, span_s)
        if self._lanes is not None and self._lanes.hold(time_s, view) and not self._stale_lanes:
            self._lanes.move(time_s, cone, span_s)
        elif not self._busy_lanes:
            self._busy_lanes = True
            self._document.add_next_tick_callback(self._redraw_lanes)

    async def _redraw_lanes(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._lanes is None or self._stale_lanes or not self._lanes.hold(self._time_s, self._view):
                self._stale_lanes = False
                lanes = partial(_lanes, self._recording, self._time_s, self._view, self.theme, *self._told)
                self._lanes = await loop.run_in_executor(self._site.drawing, lanes)
                self._lanes.move(self._time_s, self._cone, self._span_s)
                self.lane_pane.object = self._lanes.figure
                self._tell_lanes()
        except (TapeError, ConfigError) as error:
            self._said.object = style.banner_html(str(error), bad=True)
        finally:
            self._busy_lanes = False

    def turn_table(self, which: str) -> None:
        """Show the numbers of the lanes or of the figure as a table below it, or no more."""
        if which == "lanes":
            self.lane_words.turn()
            self._tell_lanes()
        elif which == "figure":
            self.words.turn()
            self._tell()

    def _tell_lanes(self) -> None:
        if self._lanes is not None:
            self.lane_words.tell(LANES_SAID, self._lanes.figure, self._lanes.names)

    def _tell(self) -> None:
        from workbench.views.figure_tables import caption

        if self._course is not None:
            self.words.tell(caption(self._name), self._course.figure)

    def draw_course(self, name: str, smooth: int = -1) -> None:
        """Draw a figure of the whole run, its lines smoothed by so many percent."""
        asked = (name, smooth, self.theme)
        if asked == self._asked:
            return
        self._asked, self._name, self._smooth = asked, name, smooth

        async def draw() -> None:
            loop = asyncio.get_running_loop()
            theme = self.theme
            try:
                making = partial(_course, self._recording, name, theme, *self._told, smooth=smooth)
                course = await loop.run_in_executor(self._site.drawing, making)
            except (TapeError, ConfigError) as error:
                self.course_pane.object = None
                self._said.object = style.banner_html(str(error), bad=True)
                return
            if (name, theme, smooth) == (self._name, self.theme, self._smooth):  # else another was asked for meanwhile
                course.move(self._time_s, self._span_s)
                self._course, self.course_pane.object = course, course.figure
                self._tell()

        self._document.add_next_tick_callback(draw)


def _lanes(*arguments: Any) -> Any:
    """Lanes; what draws them is loaded in the thread that draws, which takes a second once."""
    from workbench.pages.replay_figures import Lanes

    return Lanes(*arguments)


def _course(*arguments: Any, **options: Any) -> Any:
    """A figure of the whole run; loaded as `_lanes` is."""
    from workbench.pages.replay_figures import Course

    return Course(*arguments, **options)
