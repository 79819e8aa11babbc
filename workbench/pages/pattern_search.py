"""A pattern of interaction that is searched for on a tape: how often it is there, the cursor from match to match."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
import xarray as xr

from workbench.analysis.patterns import WORDS, find, parts_of
from workbench.config import ConfigError
from workbench.pages import style
from workbench.pages.recording import Recording
from workbench.pages.session import Session
from workbench.tape import TapeError


def known_pattern(text: str) -> str:
    """A pattern as an address names it; "" for what is none.

    Examples
    --------
    >>> known_pattern("Sent -> excluded, re-sent"), known_pattern("round 40")
    ('sent, excluded, sent', '')
    """
    try:
        return ", ".join(parts_of(text))
    except ConfigError:
        return ""


def is_meant(text: str) -> bool:
    """Whether somebody who types this means a pattern: one of its words at least is known."""
    return any(word.strip() in WORDS for word in text.lower().replace("->", ",").replace(",", " ").split())


class PatternSearch:
    """Parameters
    ----------
    session : Session
    recording : Recording
    move : function (event, find)
        Moves the cursor, and says what is searched for.
    pattern : str
        What is searched for at first: a pane must not appear before it has been drawn.

    Attributes
    ----------
    pane : pane
        What was found, nothing where nothing is searched for.
    """

    def __init__(self, session: Session, recording: Recording, move: Callable[..., None], pattern: str) -> None:
        self._session, self._recording, self._move = session, recording, move
        self._pattern, self._event, self._wants_first = "", 0, False
        self._found: xr.Dataset | None = None
        self.pane = style.html("", visible=bool(pattern))

    def show(self, pattern: str, event: int) -> bool:
        """The cursor stands there, and this is searched for; returns whether `look` has to be awaited."""
        is_new, self._event = pattern != self._pattern, event
        if is_new:
            self._pattern, self._found = pattern, None
        self._say()
        return is_new and bool(pattern)

    async def look(self) -> None:
        """Search, in another thread."""
        pattern = self._pattern
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._session.site.reading, find, self._recording.tape, pattern)
        except (ConfigError, TapeError) as error:
            self.pane.param.update(object=style.banner_html(str(error), bad=True), visible=True)
            return
        if pattern == self._pattern:
            self._found = found
            self._say()
            if self._wants_first:
                self._first()

    def first_of(self, pattern: str) -> None:
        """Search for a pattern, and go to its first match."""
        self._wants_first = True
        self._move(find=pattern)
        if pattern == self._pattern and self._found is not None:
            self._first()

    def _first(self) -> None:
        """Go to the first match that begins at the cursor or behind it, else to the first of all."""
        self._wants_first = False
        firsts = self._firsts()
        if len(firsts):
            at = int(np.searchsorted(firsts, self._event))
            self._move(event=int(firsts[at if at < len(firsts) else 0]))

    def step(self, event: int, *, forward: bool) -> None:
        """Go to the next or the previous match."""
        firsts = self._firsts()
        at = int(np.searchsorted(firsts, event, "right" if forward else "left")) - (0 if forward else 1)
        if 0 <= at < len(firsts):
            self._move(event=int(firsts[at]))

    def _firsts(self) -> np.ndarray[Any, Any]:
        """Where matches begin, ascending."""
        return np.zeros(0, np.int64) if self._found is None else np.unique(self._found["event"].values[:, 0])

    def _say(self) -> None:
        html = f'<p class="dos" role="status">{self._told()}</p>' if self._pattern else ""
        self.pane.param.update(object=html, visible=bool(self._pattern))

    def _told(self) -> str:
        close = style.do("match", "close", "close: search for nothing", how="clear")
        head = f"<b>{escape(self._pattern.replace(', ', ' → '))}</b>"
        if self._found is None:
            return f"{head} <span class='quiet'>searching …</span> {close}"
        count = int(self._found.sizes["match"])
        ways = style.do("match", "◂ match", "previous match", how="previous")
        ways += style.do("match", "match ▸", "next match", how="next")
        if not count:
            return f"{head} <span>is nowhere on this tape</span> {close}"
        return f"{head} <span>{self._place(count)}</span> {self._parts()} {ways} {close}"

    def _here(self) -> int:
        """The match that begins at the cursor, or one that it stands in; -1 for none."""
        assert self._found is not None
        rows, parts = np.nonzero(self._found["event"].values == self._event)
        return int(rows[parts.argmin()]) if len(rows) else -1

    def _place(self, count: int) -> str:
        row, found = self._here(), self._found
        assert found is not None
        if row < 0:
            return f"{count:,} {'match' if count == 1 else 'matches'}"
        one = found.isel(match=row)
        fragment = int(one["fragment"])
        about = f"L{int(one['learner'])}" + (f", fragment {fragment}" if fragment >= 0 else "")
        return f"match {row + 1:,} of {count:,}: {about}, {float(one['start_s']):.2f} to {float(one['end_s']):.2f} s"

    def _parts(self) -> str:
        """Buttons for the events of the match at the cursor."""
        row, found = self._here(), self._found
        if row < 0 or found is None:
            return ""
        pairs = zip(found["word"].values.tolist(), found["event"].values[row].tolist(), strict=True)
        return "".join(
            style.do("go", word, f"{word}: event {event:,}", pressed=event == self._event, event=event)
            for word, event in pairs
        )
