"""A recorded tape: grid, lanes, figures and events as of a cursor that steps, plays and stands in the address."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import panel as pn

from workbench.analysis.patterns import parts_of
from workbench.config import ConfigError
from workbench.pages import style
from workbench.pages.addresses import COMPARE, LIVE, REPLAY, START, Address, address_in
from workbench.pages.browser import Browser, First, sheet_of
from workbench.pages.demo import CAPTIONS, DEMO
from workbench.pages.lane_choice import choice_in
from workbench.pages.pattern_search import is_meant, known_pattern
from workbench.pages.places import EXAMPLE, event_of
from workbench.pages.recording import Look, Recording
from workbench.pages.replay_commands import KEYS, commands
from workbench.pages.replay_view import USUAL, ReplayView, known_figure
from workbench.pages.session import Session, trouble_parts, unread_banner
from workbench.pages.transport import SHEET
from workbench.tape import TapeError, being_written

LANES_LEAST_MS = 200
"""Nobody looks closer."""
DEPTH_MAX, SMOOTH_MAX = 6, 99
PLACED = ("event", "held", "learner", "low", "high", "find")
"""What of an address a tape may not have."""


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
        self._begun_s: float | None = None
        self.browser = Browser(
            keys=KEYS, sheet=sheet_of(*SHEET), places=EXAMPLE, picture=session.address.run.rpartition("/")[2]
        )
        self.browser.heard = self._heard
        self.view = ReplayView(session, recording, document, theme, self.browser, self.at)
        self.view.asked.update(go=self.go, move=self.move, choose=self.choose)

    def _checked(self, asked: Address) -> Address:
        last = self.recording.count - 1
        return asked._replace(
            event=min(asked.event, last) if asked.event >= 0 else last,
            held=min(asked.held, last),
            learner=asked.learner if asked.learner in self.recording.tape.wb.learners else -1,
            figure=known_figure(asked.figure),
            wide=max(asked.wide, LANES_LEAST_MS) if asked.wide >= 0 else -1,
            lanes=choice_in(asked.lanes).text,
            smooth=min(asked.smooth, SMOOTH_MAX) or -1,
            depth=min(asked.depth, DEPTH_MAX) if asked.depth != 1 else -1,
            find=known_pattern(asked.find),
            low=asked.low if asked.span_s is not None else -1,
            high=asked.high if asked.span_s is not None else -1,
        )

    def _unread(self) -> list[str]:
        """What the address said that this tape has not, or that makes no sense."""
        given, used = self.session.address._asdict(), self.at._asdict()
        moved = [f"{key} = {given[key]}" for key in PLACED if given[key] not in ("", -1, used[key])]
        return [*self.session.unread, *moved]

    def parts(self) -> list[Any]:
        """Everything in its place; what takes time comes later."""
        self._document.add_next_tick_callback(self._follow)
        name = self.session.address.run
        links = [("live", self.session.link(LIVE, name))] if self._going else []
        links += [("compare", self.session.link(COMPARE, name)), ("runs", self.session.link(START))]
        shown = self.view.parts(self.at)
        self.browser.commands = commands(self.recording, self.view.panes)
        unread = self._unread()
        said = [unread_banner(unread)] if unread else []
        if unread:  # the address line leaves it out too
            self.browser.place = {"address": self.at.query(self.session.token), "replace": True}
        return [style.header(name, self._badges(), links), *said, *self._captions(), *shown, self.browser]

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
            self.view.drawing.wear(str(said["theme"]))
        elif "key" in said:
            self._key(str(said["key"]), bool(said.get("shift")))
        elif said.get("do") == "find":
            self._find(str(said.get("text", "")))
        elif said.get("do") == "match":
            self._match(str(said.get("how")))
        elif said.get("do") == "hold":
            self._hold()
        elif said.get("do") == "range":
            self._range(str(said.get("how")))
        else:
            self.view.heard(said, self.at)

    def _find(self, text: str) -> None:
        """Go to a place, or search for a pattern."""
        try:
            if is_meant(text):
                self.view.search.first_of(", ".join(parts_of(text)))
            else:
                self.go(event_of(self.recording, text))
        except ConfigError as error:
            self.view.say(str(error))

    def _match(self, how: str) -> None:
        if how == "clear":
            self.move(find="")
        else:
            self.view.search.step(self.at.event, forward=how == "next")

    def _key(self, key: str, shift: bool) -> None:
        if key == "m":
            self._hold()
        elif key == "r":
            self._range("here")
        elif key in "wsadf":
            self._look(key)
        elif key == "c":
            self.move(depth=-1 if self.at.depth == 0 else 0)
        elif key == "x":
            self.view.search.step(self.at.event, forward=not shift)
        elif key.isdecimal():
            self.choose(int(key) - 1)
        else:
            self.view.transport.key(key, shift, self.at.event, self.at.learner)

    def _hold(self) -> None:
        self.move(held=self.at.event if self.at.held < 0 else -1)

    def _look(self, key: str) -> None:
        """Closer, from further away, back and forth."""
        whole_ms = max(1, round(float(self.recording.time_s.max(initial=0.0)) * 1e3))
        usual_ms = round(USUAL.wide_s * 1e3)
        wide_ms = min(self.at.wide if self.at.wide >= 0 else usual_ms, max(whole_ms, LANES_LEAST_MS))
        if key in "ad":
            by_s = wide_ms / 5e3 * (1 if key == "d" else -1)
            self.go(self.recording.at_time(float(self.recording.time_s[self.at.event]) + by_s))
            return
        ways = {"w": wide_ms // 2, "s": min(wide_ms * 2, whole_ms), "f": usual_ms if wide_ms >= whole_ms else whole_ms}
        self.move(wide=-1 if ways[key] == usual_ms else ways[key])

    def _range(self, how: str) -> None:
        """Begin a part of the run at the cursor, end it there, give it up, look at it alone."""
        if how == "fit" and self.at.span_s is not None:
            start_s, end_s = self.at.span_s
            self.move(event=self.recording.at_time((start_s + end_s) / 2), wide=self.at.high - self.at.low)
        elif how == "clear":
            self._begun_s = None
            self.move(low=-1, high=-1)
        elif how == "here":
            here_s = float(self.recording.time_s[self.at.event])
            if self._begun_s is None:
                self._begun_s = here_s
                self.view.say(f"A part of the run begins at {here_s:.3f} s; press R where it ends.")
            else:
                begun_s, self._begun_s = self._begun_s, None
                self.view.choose_part(*sorted((begun_s, here_s)))

    async def _follow(self) -> None:
        """Show the newest cursor; those that came in between are left out."""
        if self._busy:
            return
        self._busy = True
        try:
            while self._shown != self.at:
                at = self.at
                loop = asyncio.get_running_loop()
                look = partial(self.recording.look, at.event, at.held, at.show, at.learner, at.deep)
                self._show(at, await loop.run_in_executor(self.session.site.reading, look))
        except TapeError as error:
            self.view.say(str(error), bad=True)
        finally:
            self._busy = False

    def _show(self, at: Address, look: Look) -> None:
        before, self._shown = self._shown, at
        self.view.show(at, look, before)


__all__ = ["REPLAY", "make"]
