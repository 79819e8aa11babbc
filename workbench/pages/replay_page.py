"""A recorded tape: the grid, lanes, courses and events as of a cursor that steps, plays and stands in the address."""

from __future__ import annotations

import asyncio
from html import escape
from typing import Any

import panel as pn

from workbench.config import ConfigError
from workbench.pages import style
from workbench.pages.addresses import LIVE, REPLAY, START, Address, address_in
from workbench.pages.cells import then_cell
from workbench.pages.event_words import sentence, who
from workbench.pages.live_page import row_of
from workbench.pages.recording import Look, Recording
from workbench.pages.session import Session
from workbench.pages.transport import Transport
from workbench.pages.vitals import then_vitals
from workbench.pages.widgets import Browser, EventList, LearnerGrid
from workbench.tape import TapeError, being_written

GROUNDS = (
    '<p class="quiet">Ground of the lanes: blue is the past of the event at the cursor (what it could know of), '
    "green its future (what could know of it), white neither.</p>"
)
KEYS = [" ", "ArrowLeft", "ArrowRight", "Home", "End"]


def make(session: Session) -> Any:
    """The page: at first that the tape is opened, then the tape or what is wrong with it."""
    name = session.address.run
    path = session.site.folders.path(name)
    whole = style.page(
        style.header(name, "… opening", [("runs", session.link(START))]),
        style.banner(f"Opening the tape of {name}.", "A long one takes some seconds."),
    )
    document = pn.state.curdoc

    async def fill() -> None:
        loop = asyncio.get_running_loop()
        try:
            recording = await loop.run_in_executor(session.site.reading, session.site.recording, path)
            going = being_written(path)
            whole[:] = _Replay(session, recording, document, going).parts()
        except (TapeError, ConfigError, OSError) as error:
            whole[:] = _trouble(session, str(error))

    pn.state.onload(fill)
    return whole


def _trouble(session: Session, sentence: str) -> list[Any]:
    way_on = f'<a href="{escape(session.link(START))}">Choose another run</a>'
    return [
        style.header(session.address.run, "✕ cannot be opened", [("runs", session.link(START))]),
        style.banner(sentence, way_on, bad=True, html_way_on=True),
    ]


class _Replay:
    """One tab's cursor on a tape."""

    def __init__(self, session: Session, recording: Recording, document: Any, going: bool) -> None:
        self.session, self.recording, self._document = session, recording, document
        asked = session.address.event
        self._wanted = min(asked, recording.count - 1) if asked >= 0 else recording.count - 1
        self._shown, self._busy, self._drawing = -1, False, False
        self._lanes: Any = None
        self._course: Any = None
        self._time_s = 0.0
        name = session.address.run
        links = [("live", session.link(LIVE, name))] if going else []
        note = "◂ tape so far, the run goes on" if going else "◂ replay"
        self.header = style.header(name, [note], [*links, ("runs", session.link(START))])
        self.vitals, self.inspector = style.html(""), style.html("")
        self.grid = LearnerGrid(sizing_mode="stretch_width", margin=0)
        self.events = EventList(sizing_mode="stretch_width", margin=0)
        self.events.heard = lambda said: self.go(said.get("event"))
        self.browser = Browser(keys=KEYS)
        self.browser.heard = self._heard
        self.transport = Transport(recording, self.go, self._wanted)
        self.lane_pane = pn.pane.Bokeh(None, sizing_mode="stretch_width", margin=0)
        self.course_pane = pn.pane.Bokeh(None, sizing_mode="stretch_width", margin=0)
        self.which: Any = pn.widgets.Select(options=_courses(), value="loss", width=160, margin=0)
        self.which.param.watch(lambda _: self._redraw_course(), "value")

    def parts(self) -> list[Any]:
        """Everything in its place; what takes time comes later."""
        self._document.add_next_tick_callback(self._follow)
        self._redraw_course()
        around = pn.Column(self.events, styles=style.scrolled(430), sizing_mode="stretch_width", margin=0)
        return [
            self.header,
            self.transport.panel(),
            self.vitals,
            style.beside(
                style.column(
                    style.card(style.html("<h2>Learners at the cursor</h2>"), self.grid),
                    style.card(self.inspector),
                    style.card(style.html("<h2>Events around the cursor</h2>"), around),
                    share=5,
                ),
                style.column(
                    style.card(self.lane_pane, style.html(GROUNDS)),
                    style.card(self.which, self.course_pane),
                    share=7,
                ),
            ),
            self.browser,
        ]

    def go(self, event: Any, from_address: bool = False) -> None:
        """Move the cursor."""
        if not isinstance(event, int) or not 0 <= event < self.recording.count or event == self._wanted:
            return
        self._wanted = event
        if not from_address:
            self.browser.address = Address(REPLAY, self.session.address.run, event).query(self.session.token)
        self._document.add_next_tick_callback(self._follow)

    def _heard(self, said: dict[str, Any]) -> None:
        if "search" in said:
            event = address_in(str(said["search"])).event
            self.browser.address = ""
            self.go(event if event >= 0 else self.recording.count - 1, from_address=True)
        else:
            self.transport.key(str(said.get("key")), bool(said.get("shift")), self._wanted)

    async def _follow(self) -> None:
        """Show the newest cursor; those that came in between are left out."""
        if self._busy:
            return
        self._busy = True
        try:
            while self._shown != self._wanted:
                event = self._wanted
                loop = asyncio.get_running_loop()
                look = await loop.run_in_executor(self.session.site.reading, self.recording.look, event)
                self._show(look)
        except TapeError as error:
            self.inspector.object = style.banner_html(str(error), bad=True)
        finally:
            self._busy = False

    def _show(self, look: Look) -> None:
        recording, event = self.recording, look.event
        self._shown, self._time_s = event, float(recording.time_s[event])
        self.vitals.object = then_vitals(look.moment)
        self.grid.cells = [then_cell(one, look.moment) for one in look.moment.learners]
        self.events.rows = [
            row_of(one, float(recording.time_s[one]), recording.said(one), rel) for one, rel in look.rows
        ]
        said = recording.said(event)
        before, after, beside = look.counts
        self.inspector.object = (
            f"<h2>Event {event:,}</h2><p><b>{escape(who(said))}</b>: {escape(sentence(said))}, at "
            f"{self._time_s:.3f} s</p><p>{escape(look.why)}</p><p class='quiet'>{before:,} events are in its past, "
            f"{after:,} in its future, {beside:,} in neither.</p>"
        )
        self.transport.show(event, self._time_s)
        if self._course is not None:
            self._course.move(self._time_s)
        if self._lanes is not None and self._lanes.hold(self._time_s):
            self._lanes.move(self._time_s, look.lanes)
        elif not self._drawing:
            self._drawing = True
            self._document.add_next_tick_callback(self._redraw_lanes)

    async def _redraw_lanes(self) -> None:
        from workbench.pages.replay_figures import Lanes

        loop = asyncio.get_running_loop()
        try:
            event = self._wanted
            time_s = float(self.recording.time_s[event])
            self._lanes = await loop.run_in_executor(self.session.site.drawing, Lanes, self.recording, time_s)
            look = await loop.run_in_executor(self.session.site.reading, self.recording.look, self._wanted)
            self._lanes.move(float(self.recording.time_s[look.event]), look.lanes)
            self.lane_pane.object = self._lanes.figure
        except (TapeError, ConfigError) as error:
            self.inspector.object = style.banner_html(str(error), bad=True)
        finally:
            self._drawing = False

    def _redraw_course(self) -> None:
        async def draw() -> None:
            from workbench.pages.replay_figures import Course

            loop = asyncio.get_running_loop()
            name = str(self.which.value)
            try:
                course = await loop.run_in_executor(self.session.site.drawing, Course, self.recording, name)
            except (TapeError, ConfigError) as error:
                self.course_pane.object = None
                self.inspector.object = style.banner_html(str(error), bad=True)
                return
            course.move(self._time_s)
            self._course, self.course_pane.object = course, course.figure

        self._document.add_next_tick_callback(draw)


def _courses() -> dict[str, str]:
    from workbench.pages.replay_figures import COURSES

    return {name.replace("_", " "): name for name in COURSES}
