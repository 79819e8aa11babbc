"""What a page of a tape is made of: panes in their places, and how each shows a cursor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import panel as pn

from workbench.config import ConfigError
from workbench.pages import style
from workbench.pages.addresses import SHOWN, Address
from workbench.pages.browser import Browser
from workbench.pages.event_words import row_of
from workbench.pages.exports import Shown
from workbench.pages.fork_form import ForkForm
from workbench.pages.inspector import inspector_html
from workbench.pages.lane_choice import LaneChoice, choice_in, lanes_html, lateness
from workbench.pages.layouts import Layout, layout_of
from workbench.pages.panes import Panes
from workbench.pages.pattern_search import PatternSearch
from workbench.pages.ranges import NOTHING, range_html
from workbench.pages.recording import Look, Recording
from workbench.pages.replay_drawing import (
    COURSES,
    DEPTHS,
    SMOOTHED,
    SMOOTHINGS,
    Drawing,
    LaneView,
    cone_of,
    window_s,
)
from workbench.pages.session import Session
from workbench.pages.share import Share
from workbench.pages.transport import Transport
from workbench.pages.vitals import then_vitals
from workbench.pages.widgets import EventList, LearnerGrid
from workbench.tape import TapeError
from workbench.views.learner_cells import behind_then, then_cells

FIGURE = next(iter(COURSES))
USUAL = LaneView()
SHARED = ("code", "perfetto", "csv", "report", "grid", "lanes_svg", "gif")


def known_figure(name: str) -> str:
    """A figure as an address names it: the usual one, and what is none, by no name."""
    return name if name in COURSES and name != FIGURE else ""


class ReplayView:
    """Parameters
    ----------
    session : Session
    recording : Recording
    document : bokeh Document
    theme : str
    browser : Browser
    at : Address
        What is chosen at first.

    Attributes
    ----------
    asked : dict of function
        ``go`` (event, quiet), ``move`` (…), ``choose`` (learner): how the page is asked for something else.
    """

    def __init__(
        self, session: Session, recording: Recording, document: Any, theme: str, browser: Browser, at: Address
    ) -> None:  # fmt: skip
        self._session, self.recording, self._document, self._browser = session, recording, document, browser
        self.asked: dict[str, Callable[..., None]] = {}
        self._lanes, self._unfolded, self._late, self._at = choice_in(at.lanes), False, "", at
        self._ranged: tuple[float, float] | None = None
        self._look: Look | None = None
        self._counting = False
        self.panes = Panes()
        self.vitals, self.inspector, self._chosen = style.html(""), style.html(""), style.html(NOTHING)
        self._note, self._lane_box = style.html("", visible=False), style.html("")
        self.grid = LearnerGrid(sizing_mode="stretch_width", margin=0, chosen=at.learner)
        self.grid.heard = lambda said: self.asked["choose"](said.get("choose", -1))
        self.events = EventList(sizing_mode="stretch_width", margin=0, label="events around the cursor")
        self.events.heard = lambda said: self.asked["go"](said.get("event"))
        self.transport = Transport(
            recording, lambda event, quiet: self.asked["go"](event, quiet), lambda axis: self.asked["move"](axis=axis),
            at.event, at.axis,
        )  # fmt: skip
        self.share, self.fork = Share(session, recording, browser), ForkForm(session, recording)
        self.drawing = Drawing(session.site, recording, document, self.inspector, theme, self.choose_part, self._pick)
        options = {name.replace("_", " "): name for name in COURSES}
        self.which = self._select("figure", options, at.figure or FIGURE, 160)
        self.listed = self._select("list", list(SHOWN), at.show, 140, "show")
        self.smoothing = self._select("smoothing", SMOOTHINGS, -1, 120, "smooth")
        self.arrows = self._select("arrows", DEPTHS, -1, 190, "depth")
        self.search = PatternSearch(session, recording, lambda **changes: self.asked["move"](**changes), at.find)

    def _select(self, name: str, options: Any, value: Any, width: int, key: str = "") -> Any:
        made: Any = style.select(name=name, options=options, value=value, width=width, margin=0)
        made.param.watch(lambda change: self.asked["move"](**{key or name: change.new}), "value")
        return made

    def parts(self, at: Address) -> list[Any]:
        """Everything in its place."""
        self._show_lanes()
        around = pn.Column(self.events, styles=style.scrolled(360), sizing_mode="stretch_width", margin=0)
        panes = self.panes
        learners = panes.card("learners", style.html("<h2>Learners at the cursor</h2>"), self.grid)
        drawing = self.drawing
        lanes = panes.card(
            "lanes", self._lane_box, drawing.lane_pane, drawing.lane_words.pane, self.arrows, drawing.arrows_said
        )
        events = [
            panes.card("events", style.html("<h2>Events around the cursor</h2>"), self.listed, around),
            panes.card("chosen part", self._chosen),
        ]
        figures = [
            panes.card("why", self.inspector),
            panes.card("figure", style.beside(self.which, self.smoothing), drawing.course_pane, drawing.words.pane),
        ]
        more = [panes.keep("take away", self.share.panel()), panes.panel()]
        return [
            panes.keep("cursor", self.transport.panel()),
            self._note,
            self.search.pane,
            panes.keep("vitals", self.vitals),
            style.pair([learners], [lanes]),
            style.pair(events, figures),
            style.pair([panes.keep("fork", self.fork.panel())], more),
        ]

    def say(self, text: str, *, bad: bool = False) -> None:
        """A sentence above everything, until the cursor moves."""
        self._note.param.update(object=style.banner_html(text, bad=bad), visible=True)

    def choose_part(self, start_s: float, end_s: float) -> None:
        """Choose a part of the run."""
        low, high = (max(0, round(time_s * 1e3)) for time_s in (start_s, end_s))
        if low < high:
            self.asked["move"](low=low, high=high)

    def _pick(self, name: str, x: float, y: float) -> None:
        """Go to what was clicked in a figure."""
        event = self.recording.picked(name, x, int(y))
        if event >= 0:
            self.asked["go"](event)

    def heard(self, said: dict[str, Any], at: Address) -> None:
        """Buttons in tables and cards, and commands."""
        what = said.get("do")
        if "layout" in said:
            self._load(str(said["layout"]))
        elif what == "layout":
            self._browser.offer_file("layout.json", "application/json", self.layout(at).to_json().encode())
        elif what == "pane":
            self.panes.turn(str(said.get("name")))
        elif what == "lanes" and "how" in said:
            self._unfolded = True
            behind = behind_then(self._look.moment) if self._look is not None else {}
            self._late = lateness(said, self._late, behind, f"at event {at.event:,}")
            self._arrange(self._lanes.heard(said, self.recording.tape.wb.learners, behind))
        elif what == "table":
            self.drawing.turn_table(str(said.get("which")))
        elif what in ("go", "learner", "choose"):
            self._choose(said)
        elif what in SHARED:
            self.share.take(str(what), at, self.drawing.theme, self._shown_lanes(at))

    def _choose(self, said: dict[str, Any]) -> None:
        for name, ask in (("event", "go"), ("learner", "choose")):
            if str(said.get(name, "")).isdecimal():
                self.asked[ask](int(said[name]))
        changes: dict[str, Any] = {key: str(said[key]) for key in ("figure", "show", "axis") if key in said}
        numbers = {key: str(said[key]) for key in ("depth", "smooth") if key in said}
        changes |= {key: int(text) for key, text in numbers.items() if text.removeprefix("-").isdecimal()}
        if changes:
            self.asked["move"](**changes)

    def layout(self, at: Address) -> Layout:
        """What a file says of this page."""
        return Layout("replay", self.panes.hidden, self._lanes, self.drawing.theme, at.axis, at.show, at.figure)

    def _load(self, text: str) -> None:
        try:
            found = layout_of(text)
        except ConfigError as error:
            self.say(str(error), bad=True)
            return
        self.panes.hide(found.hidden)
        self._arrange(found.lanes)
        chosen = {name: getattr(found, name) for name in ("axis", "show", "figure")}
        self.asked["move"](**{name: value for name, value in chosen.items() if value or name == "figure"})
        if found.theme:
            self._browser.turn(found.theme)

    def _arrange(self, lanes: LaneChoice) -> None:
        self.asked["move"](lanes=lanes.text)
        if lanes.text == self._lanes.text:
            self._show_lanes()  # whether they are unfolded is no part of the address

    def _show_lanes(self) -> None:
        html = lanes_html(
            self._lanes, self.recording.tape.wb.learners, unfolded=self._unfolded, can_collapse=True, late=self._late
        )
        if html != self._lane_box.object:
            self._lane_box.object = html

    def _view(self, at: Address) -> LaneView:
        return LaneView(at.wide / 1e3 if at.wide >= 0 else USUAL.wide_s, self._lanes)

    def _shown_lanes(self, at: Address) -> Shown:
        low, high = window_s(self.recording, float(self.recording.time_s[at.event]), self._view(at).wide_s)
        return Shown(low, high, self._lanes.rows(self.recording.tape.wb.learners))

    def _move(self, at: Address, look: Look) -> None:
        cone = cone_of(self.recording, look, at.deep)
        self.drawing.move(float(self.recording.time_s[at.event]), cone, self._view(at), at.span_s)

    def show(self, at: Address, look: Look, before: Address) -> None:
        """The cursor stands there now."""
        recording, self._look, self._at = self.recording, look, at
        if self._note.visible:
            self._note.visible = False
        self._show_vitals(look)
        self.grid.param.update(cells=then_cells(look.moment), chosen=at.learner)
        self.events.rows = [
            row_of(one, float(recording.time_s[one]), recording.said(one), rel, at=one == at.event)
            for one, rel in look.rows
        ]
        self.inspector.object = inspector_html(recording, look, at.held >= 0)
        self._set_widgets(at)
        if before.axis != at.axis:
            self.transport.show_axis(at.axis)
        if self.search.show(at.find, at.event):
            self._document.add_next_tick_callback(self.search.look)
        if self._lanes.text != at.lanes:
            self._lanes = choice_in(at.lanes)
            self._show_lanes()
        self.transport.span_s = at.span_s
        self.transport.show(at.event, float(recording.time_s[at.event]))
        self._move(at, look)
        self.drawing.draw_course(at.figure or FIGURE, at.smooth)
        self.fork.move(at.event)
        if at.span_s != self._ranged:
            self._ranged = at.span_s
            self._document.add_next_tick_callback(self._show_part)

    def _set_widgets(self, at: Address) -> None:
        """What is chosen elsewhere is shown in the fields too."""
        smooth = at.smooth if at.smooth in SMOOTHINGS.values() else -1
        depth = -1 if at.depth not in DEPTHS.values() else at.depth
        for widget, value in (
            (self.which, at.figure or FIGURE), (self.listed, at.show), (self.smoothing, smooth), (self.arrows, depth),
        ):  # fmt: skip
            if widget.value != value:
                widget.value = value
        self.smoothing.disabled = (at.figure or FIGURE) not in SMOOTHED

    def _show_vitals(self, look: Look) -> None:
        tokens = self.recording.tokens(look.event)
        self.vitals.object = then_vitals(look.moment, tokens)
        if tokens is None and not self._counting:
            self._counting = True
            self._document.add_next_tick_callback(self._count)

    async def _count(self) -> None:
        """Count what became of the tokens, which takes a while on a long tape; the cursor moves meanwhile."""
        loop, site = asyncio.get_running_loop(), self._session.site
        await loop.run_in_executor(site.drawing, lambda: None)  # behind the figures that are asked for already
        try:
            await loop.run_in_executor(site.counting, self.recording.count_tokens)
        except TapeError as error:
            self.say(str(error), bad=True)
            return
        if self._look is not None:
            self._show_vitals(self._look)

    async def _show_part(self) -> None:
        """The table of the chosen part."""
        asked = self._ranged
        if asked is None:
            self._chosen.object = NOTHING
            return
        making = partial(range_html, self.recording.tape, *asked)
        try:
            html = await asyncio.get_running_loop().run_in_executor(self._session.site.drawing, making)
        except (ConfigError, TapeError) as error:
            html = style.banner_html(str(error), bad=True)
        if asked == self._ranged:
            self._chosen.object = html
