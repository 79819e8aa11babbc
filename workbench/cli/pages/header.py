"""What stands above every page: which run it is, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from workbench.cli import words

Run = Mapping[str, Any]


def show(path: str, run: Run) -> Iterator[Text]:
    """Yield the name of a run, and its state."""
    about = f"{run['preset'] or 'no preset'}, {run['clock'] or 'unknown'} clock, seed {run['config']['seed']}"
    if run["imported"]:
        about = "imported from the logs of another trainer, clocks derived"
    yield Text.assemble((path, "bold"), f"  {about}")
    text, style = state(run)
    yield Text(text, style=style)
    ended = outcome(run)
    if ended:
        yield Text(ended, style="red")
    if run["torn_bytes"]:
        yield Text(
            f"{words.count(run['torn_bytes'])} bytes dropped: records cut off in mid-write by a crash", style="red"
        )
    since = words.seconds(run["began_s"])
    yield Text(f"times count from the start of rounds, {since} after that of the run", style="dim")


def outcome(run: Run) -> str:
    """Return what the run's supervisor said last, empty if there was nothing to say."""
    ended = run.get("outcome")
    if not ended or not (ended["code"] or ended["line"]):
        return ""
    return f"ended with exit code {ended['code']}: {ended['line'] or 'no word'}"


def state(run: Run) -> tuple[str, str]:
    """Return how the run ended, and the style of that line."""
    done = f"{run['merges']:,} of {run['merges_wanted']:,} merges"
    time = f"{words.seconds(run['duration_s'])} of {run['clock'] or 'its own'} time"
    reason = f" ({words.word(run['state_reason'])})" if run["state_reason"] not in ("", run["state"]) else ""
    texts = {
        "finished": (f"finished: {words.plural(run['merges'], 'merge')} in {time}", "green"),
        "stopped": (f"stopped{reason} after {done}, {time}; the tape is closed", "yellow"),
        "running": (f"running: {done}, {time} so far", "cyan"),
        "cut_off": (f"cut off after {done}, {time}: killed or lost, whole up to its last record", "red"),
    }
    return texts[run["state"]]
