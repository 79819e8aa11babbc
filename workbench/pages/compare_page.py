"""Two to six runs side by side: what differs, where they part, losses on one axis, and cursors that are linked."""

from __future__ import annotations

import asyncio
from html import escape
from typing import Any

import panel as pn

from workbench.analysis.timelines import NAMES
from workbench.config import ConfigError
from workbench.pages import browser, style
from workbench.pages.addresses import COMPARE, RUNS_MAX, START, Address, address_in
from workbench.pages.browser import Browser, First, sheet_of
from workbench.pages.compare_choice import Choice, left_out, named
from workbench.pages.comparison_html import figures_html, settings_html, story_html, then_html
from workbench.pages.exports import code_of_comparison
from workbench.pages.figure_words import FigureWords
from workbench.pages.linked import AXES, OF_CURVES, Linked
from workbench.pages.scrubber import Scrubber
from workbench.pages.session import Session, trouble_parts
from workbench.tape import TapeError

STEP = 10
BESIDE_MAX, ROWS_BESIDE_MAX = 3, 10
"""Runs, and settings that differ, up to which tables stand beside the figures."""
SHARE = "".join((
    style.do("link", "copy link"), style.do("code", "copy as code"),
    style.do("png", "PNG", "PNG: pictures of the figures"), style.do("svg", "SVG", "SVG: the figures"),
))  # fmt: skip
KEYS = ["ArrowLeft", "ArrowRight", "Home", "End"]
COMMANDS = [
    ["all cursors back", "←", {"key": "ArrowLeft"}], ["all cursors forth", "→", {"key": "ArrowRight"}],
    ["all cursors back by a tenth", "Shift ←", {"key": "ArrowLeft", "shift": True}],
    ["all cursors forth by a tenth", "Shift →", {"key": "ArrowRight", "shift": True}],
    ["all cursors to the start", "Home", {"key": "Home"}], ["all cursors to the end", "End", {"key": "End"}],
    *([f"common axis: {NAMES[name]}", "", {"do": "axis", "axis": name}] for name in AXES),
    ["copy link: the address of this view", "", {"do": "link"}],
    ["copy as code: lines for a notebook", "", {"do": "code"}],
    ["take away PNG: pictures of the figures", "", {"do": "png"}], ["take away SVG: the figures", "", {"do": "svg"}],
    *map(list, browser.COMMANDS),
]  # fmt: skip
"""For the list on Ctrl+K."""
SHEET = (("← →", "move all cursors by a hundredth"), ("Shift ← →", "by a tenth"), ("Home End", "to the start, the end"))


def make(session: Session) -> Any:
    """The page: a choice of runs, or the runs that the address names."""
    asked = named(session)
    if len(asked) < 2:
        return style.page(*Choice(session, asked).parts())
    names = asked[:RUNS_MAX]
    paths = [session.site.folders.path(name) for name in names]
    first = First()
    whole = style.page(
        style.header(f"{len(names)} runs", "… opening", [("runs", session.link(START))]),
        style.banner(f"Opening the tapes of {', '.join(names)}.", "Long ones take some seconds."),
        first.browser,
    )
    document = pn.state.curdoc

    async def fill() -> None:
        loop = asyncio.get_running_loop()
        try:
            recordings = [
                await loop.run_in_executor(session.site.reading, session.site.recording, path) for path in paths
            ]
            linked = await loop.run_in_executor(session.site.reading, Linked, list(names), recordings)
            whole[:] = [*left_out(asked), *_Compare(session, linked, document, first.theme).parts()]
        except (TapeError, ConfigError, OSError) as error:
            whole[:] = trouble_parts(session, str(error), "✕ cannot be compared")

    pn.state.onload(fill)
    return whole


SENTENCES = {
    "losses": "Validation loss of each run along the common axis.",
    "differences": "By how much the validation loss of each run is above that of A, at the same place of the axis.",
}


class _Compare:
    """One tab's view of several runs."""

    def __init__(self, session: Session, linked: Linked, document: Any, theme: str) -> None:
        self.session, self.linked, self._document = session, linked, document
        asked = session.address
        self.at = asked._replace(axis=asked.axis if asked.axis in AXES else AXES[0], at=asked.at)
        self._pushed = self.at
        self._theme = theme
        self._drawn: Any = None
        self.browser = Browser(keys=KEYS, sheet=sheet_of(*SHEET), commands=COMMANDS, picture="comparison")
        self.browser.heard = self._heard
        self.strip = Scrubber(sizing_mode="stretch_width", margin=(4, 6), label="cursor on all runs")
        self.strip.heard = self._dragged
        self.axis: Any = style.select(
            name="common axis", options={NAMES[name]: name for name in AXES}, value=self.at.axis, width=170, margin=2
        )
        self.axis.param.watch(lambda change: self.move(axis=change.new), "value")
        self.then, self.words = style.html(""), {name: FigureWords(name) for name in SENTENCES}
        self.pane = pn.pane.Bokeh(None, sizing_mode="stretch_width", margin=0)
        self.differences = pn.pane.Bokeh(None, sizing_mode="stretch_width", margin=0)

    def parts(self) -> list[Any]:
        """Everything in its place."""
        self._show(whole=True)
        linked, session = self.linked, self.session
        runs = f"{len(linked.names)} runs"
        return [
            style.header(runs, "≡ compare", [("other runs", session.link(COMPARE)), ("runs", session.link(START))]),
            style.card(style.html(story_html(linked, session) + f'<div class="dos">{SHARE}</div>')),
            style.card(self.axis, self.strip, style.html("<h2>At the cursor</h2>"), self.then),
            *self._below(),
            self.browser,
        ]

    def _below(self) -> list[Any]:
        """Tables and figures: beside each other, or below each other where tables need the whole width."""
        tables = [style.card(style.html(html(self.linked))) for html in (settings_html, figures_html)]
        figures = [
            style.card(self.pane, self.words["losses"].pane),
            style.card(self.differences, self.words["differences"].pane),
        ]
        if len(self.linked.names) > BESIDE_MAX or len(self.linked.found.settings) > ROWS_BESIDE_MAX:
            return [style.beside(*map(style.column, figures)), tables[1], tables[0]]
        return [style.beside(style.column(*tables, share=5), style.column(*figures, share=7))]

    def move(self, quiet: bool = False, **changes: Any) -> None:
        """Change what is chosen, and the address."""
        before, self.at = self.at, self.at._replace(**changes)
        if self.at != self._pushed:
            self.browser.place = {"address": self.at.query(self.session.token), "replace": quiet}
            self._pushed = self._pushed if quiet else self.at
        self._show(whole=before.axis != self.at.axis)

    @property
    def _part(self) -> float:
        return 1.0 if self.at.at < 0 else self.at.at / 1000

    def _heard(self, said: dict[str, Any]) -> None:
        if "search" in said:
            found: Address = address_in(str(said["search"]))
            before, self.at = self.at, self.at._replace(axis=found.axis if found.axis in AXES else AXES[0], at=found.at)
            self._pushed, self.browser.place = self.at, {}
            self._show(whole=before.axis != self.at.axis)
        elif said.get("theme") in ("light", "dark"):
            self._theme = said["theme"]
            self._document.add_next_tick_callback(self._draw)
        elif said.get("do") == "axis" and said.get("axis") in AXES:
            self.move(axis=str(said["axis"]))
        elif said.get("do") == "table" and said.get("which") in self.words:
            self.words[str(said["which"])].turn()
            self._tell()
        elif said.get("do") == "code":
            code = code_of_comparison(self.linked.recordings, OF_CURVES[self.at.axis])
            self.browser.offer_text("This comparison as code", code)
        elif "key" in said:
            here = 1000 if self.at.at < 0 else self.at.at
            by = STEP * (10 if said.get("shift") else 1)
            ways = {"ArrowLeft": here - by, "ArrowRight": here + by, "Home": 0, "End": 1000}
            if said["key"] in ways:
                self.move(at=min(max(ways[said["key"]], 0), 1000))

    def _dragged(self, said: dict[str, Any]) -> None:
        part = said.get("x")
        if isinstance(part, int | float) and 0 <= part <= 1:
            self.move(not said.get("end"), at=round(part * 1000))

    def _show(self, *, whole: bool) -> None:
        linked, axis = self.linked, self.at.axis
        if whole:
            self.strip.param.update(**linked.strip(axis)._asdict())
            if self.axis.value != axis:
                self.axis.value = axis
            self._document.add_next_tick_callback(self._draw)
        value = linked.value(axis, self._part)
        said = linked.text(axis, value)
        self.strip.param.update(at=self._part, now=round(self._part * 1000), most=1000, said=said)
        self.then.object = then_html(linked, self.session, axis, value)
        if self._drawn is not None:
            self._drawn.move(value)

    async def _draw(self) -> None:
        from workbench.pages.compare_figures import Overlay

        loop = asyncio.get_running_loop()
        asked = (self.at.axis, self._theme)
        try:
            drawn = await loop.run_in_executor(self.session.site.drawing, Overlay, self.linked, *asked)
        except (TapeError, ConfigError) as error:
            self.then.object = style.banner_html(escape(str(error)), bad=True)
            return
        if asked == (self.at.axis, self._theme):
            drawn.move(self.linked.value(self.at.axis, self._part))
            self._drawn = drawn
            self.pane.object, self.differences.object = drawn.losses, drawn.differences
            self._tell()

    def _tell(self) -> None:
        """What both figures show, in words and if it is wanted in numbers."""
        if self._drawn is not None:
            for name, words in self.words.items():
                words.tell(SENTENCES[name], getattr(self._drawn, name))
