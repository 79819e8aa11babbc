"""The browser itself: its address line and Back, keys, the theme, the clipboard, files that it saves."""

from __future__ import annotations

import base64
from typing import Any

import param

from workbench.pages.widgets import Component, script
from workbench.views.states import STATES

SHEET = (
    ("?", "these keys"), ("Ctrl+K", "all commands"), ("T", "dark or light"), ("Tab", "next control"),
    ("Esc", "close what lies on top"),
)  # fmt: skip
"""Keys that every page has, with what they do."""

Command = list[Any]
"""Its name, its keys, and what is said when it is chosen: ``{"do": …}`` or ``{"key": …}``."""
COMMANDS: tuple[Command, ...] = (["dark or light", "T", {"do": "theme"}], ["keys of this page", "?", {"do": "sheet"}])
"""Those that every page has."""


def legend() -> list[list[str]]:
    """Each sign with the states that it stands for."""
    found: dict[str, list[str]] = {}
    for word, sign in STATES.items():
        found.setdefault(sign, []).append(word)
    return [[sign, ", ".join(words)] for sign, words in found.items()]


class Browser(Component):
    """What of a page is the browser's; keys in text fields are left alone.

    It says ``{"key": …, "shift": …}``, ``{"search": …}`` after going back to an earlier address, ``{"theme": …}``,
    ``{"layout": …}`` (the text of a file, "" of one that is too large), and what stands in the data attributes of an
    element with ``data-do`` that was clicked.

    Attributes
    ----------
    place : dict
        ``address`` to show in the address line without a new page; ``replace``: going back leaves it out.
    to : str
        Set, the browser goes there.
    keys : list of str
        Keys that are said.
    sheet : list of (str, str)
        Keys with what they do, shown on ``?``.
    signs : list of (str, str)
        Signs of the states of learners, with their words, shown there too.
    commands : list of `Command`
        Offered on Ctrl+K.
    places : str
        An example of a place that may be typed there, said as ``{"do": "find", "text": …}``; "" where there are none.
    wear : str
        A theme to turn to.
    text, file : dict
        To be copied (``title``, ``text``), to be saved (``name``, ``type``, ``data`` in base64).
    picture : str
        Name of the pictures that are saved.
    """

    place = param.Dict(default={})
    to = param.String(default="")
    keys = param.List(default=[])
    sheet = param.List(default=[list(one) for one in SHEET])
    signs = param.List(default=legend())
    commands = param.List(default=list(COMMANDS))
    places = param.String(default="")
    wear = param.String(default="")
    text = param.Dict(default={})
    file = param.Dict(default={})
    picture = param.String(default="workbench")

    _esm = script("known") + script("palette") + script("browser")

    def go(self, to: str) -> None:
        """Leave for another page."""
        self.to = to

    def turn(self, theme: str) -> None:
        """Turn to a theme."""
        self.wear = theme
        self.wear = ""

    def offer_text(self, title: str, text: str) -> None:
        """Give a text to the clipboard, and show it."""
        self.text = {"title": title, "text": text}
        self.text = {}

    def offer_file(self, name: str, kind: str, data: bytes) -> None:
        """Let the browser save a file."""
        self.file = {"name": name, "type": kind, "data": base64.b64encode(data).decode()}
        self.file = {}


class First:
    """The browser of a page that is still being opened: which theme it wears is known before anything is drawn.

    Attributes
    ----------
    browser : Browser
    theme : str
    """

    def __init__(self) -> None:
        self.browser, self.theme = Browser(), "light"
        self.browser.heard = self._heard

    def _heard(self, said: dict[str, Any]) -> None:
        if said.get("theme") in ("light", "dark"):
            self.theme = str(said["theme"])


def sheet_of(*more: tuple[str, str]) -> list[Any]:
    """Keys of a page behind those that every page has."""
    return [list(one) for one in (*more, *SHEET)]
