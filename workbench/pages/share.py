"""A row of buttons that take something away from a page, and what they do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import panel as pn

from workbench.config import ConfigError
from workbench.pages import exports, style
from workbench.pages.addresses import Address
from workbench.pages.browser import Browser
from workbench.pages.recording import Recording
from workbench.pages.session import Session
from workbench.tape import TapeError

BUTTONS = (
    ("link", "copy link", "the address of this view"),
    ("code", "copy as code", "lines for a notebook that open this view"),
    ("png", "PNG", "pictures of the figures as they stand"),
    ("svg", "SVG", "the figures as they stand, for papers"),
    ("grid", "grid SVG", "the learners at the cursor"),
    ("lanes_svg", "lanes SVG", "the lanes that are shown"),
    ("gif", "GIF", "the learners over the chosen part of the run, or over all of it"),
    ("perfetto", "Perfetto", "a trace for ui.perfetto.dev"),
    ("csv", "CSV", "all tables of the tape"),
    ("report", "report", "one file of HTML that needs no server and no network"),
)


def commands() -> list[list[Any]]:
    """The same for the list of commands."""
    return [[f"take away {text}: {meaning}", "", {"do": name}] for name, text, meaning in BUTTONS]


def buttons_html() -> str:
    """The buttons."""
    made = "".join(style.do(name, text, f"{text}: {meaning}") for name, text, meaning in BUTTONS)
    return f'<h2>Take away</h2><div class="dos">{made}</div>'


class Share:
    """Parameters
    ----------
    session : Session
    recording : Recording
    browser : Browser
        Saves and copies.
    """

    def __init__(self, session: Session, recording: Recording, browser: Browser) -> None:
        self._session, self._recording, self._browser = session, recording, browser
        self._said = style.html("", visible=False)

    def panel(self) -> Any:
        """The card."""
        return style.card(style.html(buttons_html()), self._said)

    def take(self, what: str, at: Address, theme: str, lanes: exports.Shown) -> None:
        """Do what a button is for."""
        recording = self._recording
        if what == "code":
            self._browser.offer_text("This view as code", exports.code(recording, at))
            return
        makers: dict[str, Callable[[], exports.Export]] = {
            "perfetto": partial(exports.trace, recording),
            "csv": partial(exports.tables, recording),
            "report": partial(exports.report, recording, at, theme),
            "grid": partial(exports.grid, recording, at, theme),
            "lanes_svg": partial(exports.lanes, recording, lanes, theme),
            "gif": partial(exports.film, recording, at, theme),
        }
        if what in makers:
            self._say(f"Making {what} …")
            document: Any = pn.state.curdoc
            document.add_next_tick_callback(partial(self._make, makers[what]))

    async def _make(self, maker: Callable[[], exports.Export]) -> None:
        loop = asyncio.get_running_loop()
        try:
            made = await loop.run_in_executor(self._session.site.drawing, maker)
        except (ConfigError, TapeError, OSError) as error:
            self._said.param.update(object=style.banner_html(str(error), bad=True), visible=True)
            return
        self._browser.offer_file(made.name, made.kind, made.data)
        self._say(f"{made.name}: {len(made.data):,} bytes, saved by your browser.")

    def _say(self, text: str) -> None:
        self._said.param.update(object=f'<p class="quiet">{text}</p>', visible=True)
