"""What a run of real processes shows while it goes on: a table that redraws itself, or plain lines."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from workbench.cli import output
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
    with Live(console=Console(file=sys.stderr), refresh_per_second=4, transient=True) as screen:
        while run.running:
            status = _status(run)
            if status is not None:
                screen.update(picture(status))
            time.sleep(LOOK_EVERY_S)


def _print_lines(run: Run) -> None:
    said = 0.0
    phase = ""
    while run.running:
        status = _status(run)
        now = time.monotonic()
        if status is not None and (now - said >= PLAIN_EVERY_S or status["phase"] != phase):
            said, phase = now, status["phase"]
            print(line(status), file=sys.stderr, flush=True)
        time.sleep(LOOK_EVERY_S)


def _status(run: Run) -> dict[str, Any] | None:
    """Status of a run, None while its supervisor begins or ends."""
    try:
        return run.status()
    except ConfigError:
        return None


def line(status: dict[str, Any]) -> str:
    """Return a run's status as one line."""
    loss = status.get("val_loss")
    states = " ".join(
        f"{one['label']}:{one['state']}" for one in status["learners"] if one["state"] not in ("running", "connected")
    )
    parts = [
        f"{status['phase']}: merges {status['merges']}/{status['rounds']}",
        f"{status['elapsed_s']:.0f} s",
        "" if loss is None else f"validation loss {loss:.3f}",
        states,
    ]
    return ", ".join(part for part in parts if part)


def picture(status: dict[str, Any]) -> Group:
    """Return a run's status as a heading and one line for each learner."""
    return Group(_heading(status), learners_table(status))


def _heading(status: dict[str, Any]) -> Text:
    last = status.get("last_merge") or {}
    who = " ".join(f"L{m}" for m in last.get("learners", ()))
    window = status.get("window_s")
    parts = [
        line({**status, "learners": []}),
        f"last merge: round {last['round']} of {who}" if last else "",
        f"quorum {status['quorum']}{' LOST' if status.get('quorum_lost') else ''}" if "quorum" in status else "",
        f"grace {status['grace']}" + (f" {window:.3f} s" if window is not None and window >= 0 else "")
        if "grace" in status
        else "",
    ]
    return Text("  ".join(part for part in parts if part))


def learners_table(status: dict[str, Any]) -> Table:
    """Return the learners of a run as a table."""
    drawn = Table(box=None, pad_edge=False, header_style="dim")
    wheres = [one.get("where", "") for one in status["learners"]]
    for name in ("learner", "state", "step", "loss", "behind", "tokens/s", *(["where"] if any(wheres) else [])):
        drawn.add_column(name, justify="left" if name in ("learner", "state", "where") else "right")
    for one in status["learners"]:
        state = one["state"] if one["number"] < 2 else f"{one['state']} (start {one['number']})"
        cells = (one.get("step"), one.get("loss"), one.get("behind"), one.get("tokens_per_s"))
        words = ["" if cell is None else output.number(cell) for cell in cells]
        drawn.add_row(one["label"], state, *words, *([one.get("where", "")] if any(wheres) else []))
    return drawn
