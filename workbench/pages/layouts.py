"""The layout of a page as a file: which panes are shown, which lanes in which order, theme, axis and figure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from workbench.config import ConfigError
from workbench.pages.addresses import AXES, SHOWN
from workbench.pages.lane_choice import LaneChoice

FORMAT = "workbench-layout-1"
NUMBERS_MAX = 4096
"""Learners that a file may name."""
TEXT_MAX = 40


class Layout(NamedTuple):
    """Attributes
    ----------
    page : str
        ``live`` or ``replay``.
    hidden : tuple of str
        Panes that are not shown.
    lanes : LaneChoice
    theme : str
        ``light``, ``dark``, or "" for whatever the page has.
    axis, show, figure : str
        Timeline, list of events and figure, as in an address; "" for the usual one.
    """

    page: str
    hidden: tuple[str, ...] = ()
    lanes: LaneChoice = LaneChoice()
    theme: str = ""
    axis: str = ""
    show: str = ""
    figure: str = ""

    def to_json(self) -> str:
        """The file."""
        told = {"format": FORMAT, **self._asdict(), "lanes": self.lanes._asdict()}
        return json.dumps(told, indent=2) + "\n"


def layout_of(text: str) -> Layout:
    """Read a file; what a page does not have is left out by the page.

    Raises
    ------
    ConfigError
        It is no layout.
    """
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise ConfigError(f"this file is no layout; take one that a page saved: it begins with {FORMAT!r}")
    lanes = told.get("lanes") if isinstance(told.get("lanes"), dict) else {}
    assert isinstance(lanes, dict)
    return Layout(
        _one_of(told, "page", ("live", "replay")),
        tuple(str(name)[:TEXT_MAX] for name in _list(told, "hidden")),
        LaneChoice(
            _numbers(lanes, "order"),
            _numbers(lanes, "pinned"),
            _numbers(lanes, "hidden"),
            lanes.get("collapsed") is True,
        ),
        _one_of(told, "theme", ("light", "dark", "")),
        _one_of(told, "axis", (*AXES, "")),
        _one_of(told, "show", (*SHOWN, "")),
        str(told.get("figure") or "")[:TEXT_MAX],
    )


def _list(told: Mapping[str, Any], name: str) -> list[Any]:
    found = told.get(name, [])
    if not isinstance(found, list) or len(found) > NUMBERS_MAX:
        raise ConfigError(f"{name} of this layout is no list of at most {NUMBERS_MAX:,}; save the layout anew")
    return found


def _numbers(told: Mapping[str, Any], name: str) -> tuple[int, ...]:
    found = _list(told, name)
    if not all(type(one) is int and 0 <= one < 10**6 for one in found):
        raise ConfigError(f"{name} of this layout holds something else than learners; save the layout anew")
    return tuple(dict.fromkeys(found))


def _one_of(told: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    value = told.get(name, "")
    if value not in allowed:
        said = ", ".join(repr(one) for one in allowed)
        raise ConfigError(f"{name} = {str(value)[:TEXT_MAX]!r} in this layout; allowed: {said}")
    return str(value)
