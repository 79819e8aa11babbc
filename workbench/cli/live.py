"""What a run of real processes shows while it goes on: a picture that redraws itself, or plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.live import Live
from rich.text import Text

from workbench.cli import output
from workbench.cli.live_picture import changes, line, news, picture
from workbench.config import ConfigError

if TYPE_CHECKING:
    from workbench.engine.launch import Run

LOOK_EVERY_S = 0.25
PLAIN_EVERY_S = 5.0


def watch(run: Run) -> None:
    """Show a run on stderr until it is over."""
    if sys.stderr.isatty():
        _redraw(run)
    else:
        _print_lines(run)


def _redraw(run: Run) -> None:
    console = output.progress_console()
    with Live(console=console, auto_refresh=False, transient=True) as screen:

        def show(status: dict[str, Any], news: list[str]) -> None:
            for text in news:
                console.print(Text(text, style="red"), soft_wrap=True)
            screen.update(picture(status, console.size.width, console.size.height), refresh=True)

        _follow(run, show)


def _print_lines(run: Run) -> None:
    said, seen = 0.0, None

    def show(status: dict[str, Any], news: list[str]) -> None:
        nonlocal said, seen
        for text in news:
            print(text, file=sys.stderr, flush=True)
        now, found = time.monotonic(), changes(status)
        if now - said >= PLAIN_EVERY_S or found != seen:
            said, seen = now, found
            print(line(status), file=sys.stderr, flush=True)

    _follow(run, show)


def _follow(run: Run, show: Callable[[dict[str, Any], list[str]], None]) -> None:
    """Look at a run until it is over; news is told once."""
    told: set[tuple[str, int]] = set()
    while run.running:
        status = _status(run)
        if status is not None:
            found = news(status)
            show(status, [text for key, text in found.items() if key not in told])
            told.update(found)
        time.sleep(LOOK_EVERY_S)


def _status(run: Run) -> dict[str, Any] | None:
    """Status of a run, None while its supervisor begins or ends."""
    try:
        return run.status()
    except ConfigError:
        return None
