"""Every key that a sheet of keys names does something."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

import pytest

from workbench.pages import browser, compare_page, live_commands, replay_commands, transport

NAMED = {"Space": " ", "←": "ArrowLeft", "→": "ArrowRight", "Ctrl+K": "k"}
SHEETS = {
    "replay": (transport.SHEET, replay_commands.KEYS),
    "live": (live_commands.SHEET, live_commands.KEYS),
    "compare": (compare_page.SHEET, compare_page.KEYS),
    "all": (browser.SHEET, ()),
}


def own_keys() -> set[str]:
    """Keys that the browser's script takes itself."""
    script = (files(browser.__package__) / "scripts" / "browser.js").read_text(encoding="utf-8")
    return set(re.findall(r'e\.key(?:\.toLowerCase\(\))? === "(.+?)"', script))


def keys_of(written: str) -> set[str]:
    """Keys behind what a line of a sheet writes."""
    if "…" in written:
        return set("123456789")
    parts = [part.removeprefix("Shift+") for part in written.split() if part not in ("Shift", "or")]
    return {NAMED.get(part, part.lower() if len(part) == 1 else part) for part in parts}


@pytest.mark.parametrize("page", SHEETS)
def test_every_key_on_the_sheet_is_taken(page: str) -> None:
    sheet, keys = SHEETS[page]
    taken: Sequence[str] = [*keys, *own_keys()]
    named = {key for written, *_ in sheet for key in keys_of(written)}
    assert len(named) >= 2 and named - set(taken) <= {"Esc", "Tab", "Enter"}, named - set(taken)
