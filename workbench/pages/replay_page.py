"""A recorded tape: grid, lanes, figures and events as of a cursor that steps, plays and stands in the address."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import panel as pn

from workbench.config import ConfigError
from workbench.pages import style
from workbench.pages.addresses import COMPARE, LIVE, REPLAY, SHOWN, START, Address, address_in
from workbench.pages.browser import Browser, First, sheet_of
from workbench.pages.cells import then_cell
from workbench.pages.demo import CAPTIONS, DEMO
from workbench.pages.event_words import row_of
from workbench.pages.fork_form import ForkForm
from workbench.pages.inspector import inspector_html
from workbench.pages.recording import Look, Recording
from workbench.pages.replay_drawing import COURSES, Drawing
from workbench.pages.session import Session, trouble_parts
from workbench.pages.share import Share
from workbench.pages.transport import SHEET, Transport
from workbench.pages.vitals import then_vitals
from workbench.pages.widgets import EventList, LearnerGrid
from workbench.tape import TapeError, being_written

USUAL = next(iter(COURSES))
KEYS = [" ", "ArrowLeft", "ArrowRight", "Home", "End", "n", "p", "e", "m", ",", ".", "[", "]", *"0123456789"]


def make(session: Session) -> Any:
    """The page: at first that the tape is opened, then the tape or what is wrong with it."""
    name = session.address.run
    path = session.site.folders.path(name)
    first = First()
    whole = style.page(
        style.header(name, "… opening", [("runs", session.link(START))]),
        style.banner(f"Opening the tape of {name}.", "A long one takes some seconds."),
        first.browser,
    )
    document = pn.state.curdoc

    async def fill() -> None:
        loop = asyncio.get_running_loop()
        try:
            recording = await loop.run_in_executor(session.site.reading, session.site.recording, path)
            going = being_written(path)
            whole[:] = _Replay(session, recording, document, going, first.theme).parts()
        except (TapeError, ConfigError, OSError) as error:
            whole[:] = trouble_parts(session, str(error), "✕ cannot be opened")

    pn.state.onload(fill)
    return whole


class _Replay:
    """One tab's cursor on a tape.

    Attributes
    ----------
    at : Address
        Everything that is chosen; the address line says the same.
    """

    def __init__(self, session: Session, recording: Recording, document: Any, going: bool, theme: str) -> None:
        self.session, self.recording, self._document, self._going = session, recording, document, going
        self.at = self._checked(session.address)
        self._pushed, self._shown, self._busy = self.at, Address(), False
        self.vitals, self.inspector = style.html(""), style.html("")
        self.grid = LearnerGrid(sizing_mode="stretch_width", margin=0, chosen=self.at.learner)
        self.grid.heard = lambda said: self.choose(said.get("choose", -1))
        self.events = EventList(sizing_mode="stretch_width", margin=0, label="events around the cursor")
        self.events.heard = lambda said: self.go(said.get("event"))
        self.browser = Browser(keys=KEYS, sheet=sheet_of(*SHEET), picture=session.address.run.rpartition("/")[2])
        self.browser.heard = self._heard
        self.transport = Transport(recording, self.go, lambda axis: self.move(axis=axis), self.at.event, self.at.axis)
        self.share = Share(session, recording, self.browser)
        self.fork = ForkForm(session, recording)
        self.drawing = Drawing(session.site, recording, document, self.inspector, theme)
        self.which: Any = pn.widgets.Select(
            name="figure",
            options={n.replace("_", " "): n for n in COURSES},
            value=self.at.figure or USUAL,
            width=160,
            margin=0,
        )
        self.which.param.watch(lambda change: self.move(figure=change.new), "value")
        self.show: Any = pn.widgets.Select(name="list", options=list(SHOWN), value=self.at.show, width=140, margin=0)
        self.show.param.watch(lambda change: self.move(show=change.new), "value")

    def _checked(self, asked: Address) -> Address:
        last = self.recording.count - 1
        return asked._replace(
            event=min(asked.event, last) if asked.event >= 0 else last,
            held=min(asked.held, last),
            learner=asked.learner if asked.learner in self.recording.tape.wb.learners else -1,
            figure=asked.figure if asked.figure in COURSES and asked.figure != USUAL else "",
        )

    def parts(self) -> list[Any]:
        """Everything in its place; what takes time comes later."""
        self._document.add_next_tick_callback(self._follow)
        self.drawing.draw_course(self.at.figure or USUAL)
        around = pn.Column(self.events, styles=style.scrolled(360), sizing_mode="stretch_width", margin=0)
        name = self.session.address.run
        links = [("live", self.session.link(LIVE, name))] if self._going else []
        links += [("compare", self.session.link(COMPARE, name)), ("runs", self.session.link(START))]
        return [
            style.header(name, self._badges(), links),
            *self._captions(),
            self.transport.panel(),
            self.vitals,
            style.beside(
                style.column(
                    style.card(style.html("<h2>Learners at the cursor</h2>"), self.grid),
                    style.card(style.html("<h2>Events around the cursor</h2>"), self.show, around),
                    self.fork.panel(),
                    self.share.panel(),
                    share=5,
                ),
                style.column(
                    style.card(self.drawing.lane_pane, style.html(self.drawing.grounds)),
                    style.card(self.inspector),
                    style.card(self.which, self.drawing.course_pane),
                    share=7,
                ),
            ),
            self.browser,
        ]

    def _badges(self) -> list[str]:
        attrs = self.recording.tape.attrs
        parent = attrs.get("parent")
        told = parent if isinstance(parent, dict) else {}
        fork = [f"fork of {told.get('run_id', '')[:8]}, {told.get('class', '')}"] if told else []
        note = "◂ tape so far, the run goes on" if self._going else "◂ replay"
        return [note, *fork, *self.recording.badges(), f"commit {attrs.get('code_version', '')[:16]}"]

    def _captions(self) -> list[Any]:
        if self.recording.path != DEMO.resolve():
            return []
        shown = "".join(
            f"<li>{style.do('go', one.title, '', event=self.recording.at_time(one.time_s))} {one.text}</li>"
            for one in CAPTIONS
        )
        return [
            style.card(style.html(f"<details><summary>The demo tape in five looks</summary><ol>{shown}</ol></details>"))
        ]

    def go(self, event: Any, quiet: bool = False) -> None:
        """Move the cursor; quiet: Back need not come by here."""
        if isinstance(event, int) and 0 <= event < self.recording.count:
            self.move(quiet, event=event)

    def choose(self, learner: Any) -> None:
        """Choose a learner, or nobody."""
        if isinstance(learner, int):
            self.move(learner=-1 if learner == self.at.learner or learner < 0 else learner)

    def move(self, quiet: bool = False, **changes: Any) -> None:
        """Change what is chosen, and the address."""
        self.at = self._checked(self.at._replace(**changes))
        if self.at != self._pushed:
            self.browser.place = {"address": self.at.query(self.session.token), "replace": quiet}
            self._pushed = self._pushed if quiet else self.at
        self._document.add_next_tick_callback(self._follow)

    def _heard(self, said: dict[str, Any]) -> None:
        if "search" in said:
            self.at = self._pushed = self._checked(address_in(str(said["search"])))
            self.browser.place = {}
            self._document.add_next_tick_callback(self._follow)
        elif "theme" in said:
            self.drawing.wear(str(said["theme"]))
        elif "key" in said:
            self._key(str(said["key"]), bool(said.get("shift")))
        elif said.get("do") in ("code", "perfetto", "csv", "report"):
            self.share.take(str(said["do"]), self.at, self.drawing.theme)
        elif said.get("do") in ("go", "hold") and str(said.get("event", "")).isdecimal():
            self.go(int(said["event"])) if said["do"] == "go" else self._hold()

    def _key(self, key: str, shift: bool) -> None:
        if key == "m":
            self._hold()
        elif key.isdecimal():
            self.choose(int(key) - 1)
        else:
            self.transport.key(key, shift, self.at.event, self.at.learner)

    def _hold(self) -> None:
        self.move(held=self.at.event if self.at.held < 0 else -1)

    async def _follow(self) -> None:
        """Show the newest cursor; those that came in between are left out."""
        if self._busy:
            return
        self._busy = True
        try:
            while self._shown != self.at:
                at = self.at
                loop = asyncio.get_running_loop()
                look = partial(self.recording.look, at.event, at.held, at.show, at.learner)
                self._show(at, await loop.run_in_executor(self.session.site.reading, look))
        except TapeError as error:
            self.inspector.object = style.banner_html(str(error), bad=True)
        finally:
            self._busy = False

    def _show(self, at: Address, look: Look) -> None:
        recording, before = self.recording, self._shown
        self._shown = at
        self.vitals.object = then_vitals(look.moment)
        self.grid.param.update(cells=[then_cell(one, look.moment) for one in look.moment.learners], chosen=at.learner)
        self.events.rows = [
            row_of(one, float(recording.time_s[one]), recording.said(one), rel, at=one == at.event)
            for one, rel in look.rows
        ]
        self.inspector.object = inspector_html(recording, look, at.held >= 0)
        for widget, value in ((self.which, at.figure or USUAL), (self.show, at.show)):
            if widget.value != value:
                widget.value = value
        if before.axis != at.axis:
            self.transport.show_axis(at.axis)
        if before.figure != at.figure:
            self.drawing.draw_course(at.figure or USUAL)
        time_s = float(recording.time_s[at.event])
        self.transport.show(at.event, time_s)
        self.drawing.move(time_s, look.lanes)
        self.fork.move(at.event)


__all__ = ["REPLAY", "make"]
