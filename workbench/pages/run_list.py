"""What the start page says of each run beside its name: from its files and a glance at its tape, in a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from workbench.config import ConfigError, from_toml
from workbench.engine.layout import read_outcome
from workbench.pages import style
from workbench.pages.ended import was_lost
from workbench.pages.folders import changed_s
from workbench.pages.site import Site
from workbench.tape import TapeError, being_written
from workbench.tape.glance import Glance, glance
from workbench.tape.journal import read_header
from workbench.tape.run_folder import RunFolder

AT_ONCE = 8
"""Runs that are looked at between two renewals of the page."""


class RunList:
    """Rows of runs, which say more as soon as it has been read.

    Parameters
    ----------
    site : Site
    rows : sequence of (Path, str)
        Folder of each run, and its links, as HTML.
    """

    def __init__(self, site: Site, rows: list[tuple[Path, str]]) -> None:
        self._site, self._rows = site, rows
        self._told: dict[Path, str] = {}
        self.pane = style.html(self._html())

    async def fill(self) -> None:
        """Read what is to be said, some runs at a time."""
        loop, paths = asyncio.get_running_loop(), [path for path, _ in self._rows]
        for first in range(0, len(paths), AT_ONCE):
            some = paths[first : first + AT_ONCE]
            self._told |= await loop.run_in_executor(self._site.reading, told_of, some)
            self.pane.object = self._html()

    def _html(self) -> str:
        rows = (
            f'<tr><td>{links}<br><span class="quiet">{escape(self._told.get(path, "…"))}</span></td></tr>'
            for path, links in self._rows
        )
        return f'<table class="runs">{"".join(rows)}</table>'


def told_of(paths: Iterable[Path]) -> dict[Path, str]:
    """What to say of each run."""
    return {path: told(path) for path in paths}


def told(path: Path) -> str:
    """State, merges, validation loss, learners and age of a run; never an error."""
    parts: list[Any] = []
    try:
        config = from_toml(RunFolder(path).config.read_text(encoding="utf-8"))
        wanted, learners = config.rounds, f"{config.learners} learners"
    except (ConfigError, OSError, UnicodeDecodeError):
        wanted, learners = 0, ""
    try:
        seen = glance(path)
    except TapeError:
        parts = [_without_tape(path)]
    else:
        of = f" of {wanted:,}" if wanted > seen.merges and not seen.imported else ""
        loss = "" if seen.val_loss is None else f"validation {seen.val_loss:.3f}"
        parts = [_state(path, seen, wanted), f"{seen.merges:,}{of} merges", loss, "" if seen.imported else learners]
    return " · ".join(part for part in [*parts, age(time.time() - changed_s(path))] if part)


def _state(path: Path, seen: Glance, wanted: int) -> str:
    if being_written(path):
        return "● goes on"
    outcome = read_outcome(path)
    if outcome is not None and outcome[0]:
        return f"✕ failed (exit code {outcome[0]})"
    if seen.imported:
        return "imported"
    if seen.merges >= wanted:
        return "✓ finished"
    return "■ stopped" if seen.closed and not was_lost(path) else "✕ lost"


def _without_tape(path: Path) -> str:
    if being_written(path):
        return "… starting"
    folder = RunFolder(path)
    if folder.tape.is_dir():
        return "✕ damaged: its tape cannot be read"
    try:
        read_header(folder.journal)
    except (TapeError, OSError):
        return "✕ damaged: no journal that can be read"
    return "✕ lost before its tape began"


def age(seconds: float) -> str:
    """How long ago something was.

    Examples
    --------
    >>> [age(seconds) for seconds in (-1.0, 59.0, 150.0, 7300.0, 200_000.0)]
    ['just now', 'just now', '2 min ago', '2 h ago', '2 days ago']
    """
    for unit, name in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            number = int(seconds // unit)
            return f"{number} {'day' if name == 'days' and number == 1 else name} ago"
    return "just now"
