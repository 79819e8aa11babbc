"""A run that goes on: vitals, the grid of learners, controls, the loss, lanes of the last seconds, events."""

from __future__ import annotations

import time
from html import escape
from pathlib import Path
from typing import Any

import panel as pn

from workbench.config import ConfigError
from workbench.pages import style
from workbench.pages.addresses import REPLAY, START
from workbench.pages.badges import preset_words
from workbench.pages.browser import Browser, sheet_of
from workbench.pages.controls import Controls
from workbench.pages.ended import ended_html, resume_html, was_lost
from workbench.pages.event_words import row_of
from workbench.pages.lane_choice import choice_in
from workbench.pages.layouts import Layout, layout_of
from workbench.pages.live_commands import KEYS, SHEET, commands
from workbench.pages.live_figures import LossFigure
from workbench.pages.live_lanes import LiveLanes
from workbench.pages.panes import Panes
from workbench.pages.session import Session
from workbench.pages.so_far import SoFar
from workbench.pages.telling import STALE_S, telling
from workbench.pages.vitals import live_html
from workbench.pages.watcher import Watcher
from workbench.pages.widgets import EventList, LearnerGrid
from workbench.pages.work import Shares
from workbench.views.learner_cells import ended_cell, live_cell
from workbench.views.palette import LIGHT, THEMES

TICK_MS = 200
SHARE_MAX = 0.25
"""Of one core that the ticks of all live pages together take at most: where they take longer they come less often."""
EVENTS_SHOWN = 40


def make(session: Session) -> Any:
    """The page, or what to do where the run does not go on."""
    name = session.address.run
    path = session.site.folders.path(name)
    try:
        watcher = session.site.watcher(path)
    except ConfigError as error:
        return _gone(session, path, str(error))
    return _Live(session, watcher).layout()


def _gone(session: Session, path: Path, sentence: str) -> Any:
    name = session.address.run
    way_on = (
        f'Its tape may be looked through: <a href="{escape(session.link(REPLAY, name))}">open the tape</a>, '
        f'or <a href="{escape(session.link(START))}">choose another run</a>.'
        f"{resume_html(path) if was_lost(path) else ''}"
    )
    links = [("runs", session.link(START))]
    said = style.banner(sentence, way_on, html_way_on=True)
    return style.page(style.header(name, "○ not running", links), said, Browser())


class _Live:
    """One tab's view of a watcher."""

    def __init__(self, session: Session, watcher: Watcher) -> None:
        self.session, self.watcher = session, watcher
        self.header, self.banner, self.vitals = style.html(""), style.html("", visible=False), style.html("")
        self.grid = LearnerGrid(sizing_mode="stretch_width", margin=0)
        self.grid.heard = self._clicked
        self.controls = Controls(session, watcher)
        self.controls.heard = lambda learner: self._clicked({"choose": learner})
        self.so_far, self.loss = SoFar(session.site, watcher.run.path), LossFigure()
        self.lanes = LiveLanes(session.site, watcher, choice_in(session.address.lanes))
        self.panes, self._theme = Panes(), LIGHT
        self.events = EventList(sizing_mode="stretch_width", margin=0, label="events, the newest first")
        self.browser = Browser(keys=KEYS, sheet=sheet_of(*SHEET), picture=session.address.run)
        self.browser.heard = self._heard
        self.not_shown = style.html("")
        self._seen_events: tuple[int, int, float | None] = (-1, -1, None)
        self._problem, self._ended = "", False
        self.with_merges = pn.widgets.Checkbox(name="with merges", margin=(0, 4))
        self._callback: Any = None
        self._due_s = 0.0
        self._clicked({"choose": session.address.learner})
        session.site.live_pages.add(self)

    def layout(self) -> Any:
        """Everything in its place; the first look is taken at once."""
        self._tick()
        self._callback = pn.state.add_periodic_callback(self._paced, period=TICK_MS)
        list_of_events = pn.Column(self.events, styles=style.scrolled(300), sizing_mode="stretch_width", margin=0)
        panes, events = self.panes, style.html("<h2>Events</h2>")
        figures = [
            panes.card("loss", *self.loss.parts()),
            panes.card("figure", *self.so_far.parts()),
            panes.card("events", events, self.with_merges, list_of_events, self.not_shown),
        ]
        learners = panes.card("learners", style.html("<h2>Learners</h2>"), self.grid)
        lanes = panes.card("lanes", *self.lanes.parts())
        whole = style.page(
            self.header,
            self.banner,
            panes.keep("vitals", self.vitals),
            style.pair([learners], [lanes]),
            style.pair([panes.keep("controls", self.controls.panel())], figures),
            panes.panel(),
            self.browser,
        )
        self._offer()
        return whole

    def _heard(self, said: dict[str, Any]) -> None:
        """Keys, the theme, buttons in tables."""
        if "theme" in said:
            self._theme = THEMES.get(str(said["theme"]), LIGHT)
            self.loss.wear(self._theme)
            self.so_far.wear(self._theme)
            self.lanes.wear(self._theme)
        elif "layout" in said:
            self._load(str(said["layout"]))
        elif "do" in said:
            self._do(said)
        elif said.get("key") == "k" and self.controls.learner < len(self.grid.cells):
            self._clicked({"act": self.grid.cells[self.controls.learner]["button"], "learner": self.controls.learner})
        elif said.get("key") == "f":
            self.lanes.turn()
        elif str(said.get("key", "")).isdecimal():
            self._clicked({"choose": int(said["key"]) - 1})

    def _do(self, said: dict[str, Any]) -> None:
        """Buttons in tables and cards, and commands."""
        what, learner, self._problem = said["do"], str(said.get("learner", "")), ""
        if what == "undo":
            self.controls.undo(said.get("number"))
        elif what == "act":
            self.controls.act(str(said.get("name")), self.controls.learner)
        elif what == "add":
            self.controls.add()
        elif what == "stop":
            self.controls.stop()
        elif what == "learner" and learner.isdecimal():
            self._clicked({"choose": int(learner)})
        elif what == "merges":
            self.with_merges.value = not self.with_merges.value
        elif what == "pane":
            self.panes.turn(str(said.get("name")))
        elif what == "lanes":
            self.lanes.heard(said)
            self._place()
        elif what == "whole":
            self.lanes.turn()
        elif what == "table":
            turns = {"lanes": self.lanes.turn_table, "loss": self.loss.turn_table}
            turns.get(str(said.get("which")), self.so_far.turn_table)()
        elif what == "layout":
            made = Layout("live", self.panes.hidden, self.lanes.choice, self._theme.name)
            self.browser.offer_file("layout.json", "application/json", made.to_json().encode())

    def _load(self, text: str) -> None:
        try:
            found = layout_of(text)
        except ConfigError as error:
            self._problem = str(error)
            return
        self._problem = ""
        self.panes.hide(found.hidden)
        self.lanes.arrange(found.lanes)
        self._place()
        if found.theme:
            self.browser.turn(found.theme)

    def _place(self) -> None:
        """Say in the address which lanes are shown, and who is chosen."""
        at = self.session.address._replace(learner=self.grid.chosen, lanes=self.lanes.choice.text)
        self.browser.place = {"address": at.query(self.session.token), "replace": True}

    def _offer(self) -> None:
        """Commands and lanes for the learners that there are."""
        self.browser.commands = commands(
            range(self.watcher.learners), self.panes, may=self.session.may_control and self.watcher.going
        )  # fmt: skip
        self.lanes.arrange(self.lanes.choice)

    def _clicked(self, said: dict[str, Any]) -> None:
        learner = said.get("choose", said.get("learner"))
        if not isinstance(learner, int) or not 0 <= learner < self.watcher.learners:
            return
        self.grid.chosen = learner
        self.controls.choose(learner)
        self._place()
        if "act" in said:
            self.controls.act(str(said["act"]), learner)

    def _paced(self) -> None:
        """Tick, unless the ticks of all pages would keep the server from answering clicks."""
        began_s = time.monotonic()
        if began_s < self._due_s:
            return
        used_s = time.thread_time()
        self._tick()
        used_s = time.thread_time() - used_s
        self._due_s = began_s + rest_s(used_s, len(self.session.site.live_pages))

    def _tick(self) -> None:
        """Take over what the watcher holds."""
        watcher = self.watcher
        with watcher.lock:
            status, over, heard_s = watcher.status, watcher.over, watcher.heard_s
            self._say(time.monotonic() - heard_s)
            self.loss.update(watcher.course, watcher.began_s)
            self.so_far.tick(shown=status is not None and "figure" not in self.panes.hidden, over=over is not None)
            self.controls.update()
            self._list()
            if over is not None:
                self._end()
            elif status is not None:
                now_s = status["elapsed_s"] + min(time.monotonic() - heard_s, STALE_S)
                watcher.spans.flush(now_s)
                if self.lanes.is_behind:
                    self._offer()
                shares = watcher.spans.shares(now_s, watcher.began_s, status["learners"])
                self.lanes.tick(now_s, shares.unheard, shown="lanes" not in self.panes.hidden)
                self._numbers(status, shares, watcher.spans.contributed(now_s))

    def _end(self) -> None:
        """The run is over: numbers of the whole run, nothing to press; figures are drawn once more."""
        watcher = self.watcher
        if not self._ended:
            self._ended = True
            self.controls.end()
            self._offer()
        self.lanes.end(shown="lanes" not in self.panes.hidden)
        if watcher.status is not None:
            _put(self.vitals, ended_html(watcher.whole, watcher.status))
            self.grid.cells = [ended_cell(one) for one in watcher.status["learners"]]

    def _numbers(self, status: dict[str, Any], shares: Shares, contributed: set[int]) -> None:
        may = self.session.may_control and self.watcher.going
        self.vitals.object = live_html(status, shares, contributed)
        self.grid.cells = [live_cell(one, may_control=may) for one in status["learners"]]

    def _say(self, silent_s: float) -> None:
        """Header and banner: what the run is doing, and what to do where it does nothing."""
        name, config = self.session.address.run, self.watcher.config
        tape, runs = self.session.link(REPLAY, name), self.session.link(START)
        told = telling(self.watcher, silent_s, tape, runs)
        links = [("its tape" if self.watcher.over else "its tape so far", tape)] * told.has_tape + [("runs", runs)]
        badges = [told.phase, preset_words(config), f"seed {config.seed}",
                  "" if self.session.may_control else "view only"]  # fmt: skip
        _put(self.header, style.header_html(name, badges, links))
        if self._problem and not told.said:
            told = told._replace(said=self._problem, bad=True)
        if told.said:
            _put(self.banner, style.banner_html(told.said, told.way_on, bad=told.bad))
        if self.banner.visible != bool(told.said):
            self.banner.visible = bool(told.said)

    def _list(self) -> None:
        watcher, with_merges = self.watcher, bool(self.with_merges.value)
        seen = (watcher.events.total, watcher.merges.total if with_merges else -1, watcher.began_s)
        if seen != self._seen_events:
            self._seen_events = seen
            newest = watcher.events.since(watcher.events.total - EVENTS_SHOWN).items
            if with_merges:
                newest = sorted([*newest, *watcher.merges.since(watcher.merges.total - EVENTS_SHOWN).items])
            origin_s = watcher.began_s or 0.0
            newest = newest[-EVENTS_SHOWN:]
            self.events.rows = [row_of(-1, time_s - origin_s, said) for time_s, said in reversed(newest)]
        older = watcher.events.total + watcher.merges.total - len(self.events.rows)
        lost = f", {watcher.missed:,} that did not reach this page" if watcher.missed else ""
        said = f"not shown: {older:,} merges and earlier events, {watcher.routine:,} routine{lost}; all are on the tape"
        _put(self.not_shown, f'<p class="quiet">{said}</p>')


def rest_s(used_s: float, pages: int) -> float:
    """From one tick of a page to its next at least [s], where each of so many pages takes ``used_s`` for one.

    Examples
    --------
    >>> rest_s(0.01, 1), rest_s(0.01, 20)
    (0.04, 0.8)
    """
    return used_s * pages / SHARE_MAX


def _put(pane: Any, html: str) -> None:
    """Send a text only if it is another."""
    if pane.object != html:
        pane.object = html
