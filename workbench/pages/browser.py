"""The browser itself: its address line and Back, keys, the theme, the clipboard, files that it saves."""

from __future__ import annotations

import base64
from typing import Any

import param

from workbench.pages.widgets import Component, script

SHEET = (("?", "these keys"), ("T", "dark or light"), ("Tab", "next control"), ("Esc", "close what lies on top"))
"""Keys that every page has, with what they do."""


class Browser(Component):
    """What of a page is the browser's; keys in text fields are left alone.

    It says ``{"key": …, "shift": …}``, ``{"search": …}`` after going back to an earlier address, ``{"theme": …}``, and
    what stands in the data attributes of an element with ``data-do`` that was clicked.

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
    text, file : dict
        To be copied (``title``, ``text``), to be saved (``name``, ``type``, ``data`` in base64).
    picture : str
        Name of the pictures that are saved.
    """

    place = param.Dict(default={})
    to = param.String(default="")
    keys = param.List(default=[])
    sheet = param.List(default=[list(one) for one in SHEET])
    text = param.Dict(default={})
    file = param.Dict(default={})
    picture = param.String(default="workbench")

    _esm = script("browser")

    def go(self, to: str) -> None:
        """Leave for another page."""
        self.to = to

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
