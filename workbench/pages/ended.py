"""A run that is over, on the page that watched it: how it ended, what it came to, and what may be done next."""

from __future__ import annotations

import shlex
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from workbench.analysis.reports.facts import CUT_OFF, FINISHED, STOPPED, facts
from workbench.analysis.summary import summary
from workbench.config import ConfigError
from workbench.engine.layout import PLAN_FILE, read_outcome
from workbench.pages import style
from workbench.pages.vitals import MERGES, QUORUM
from workbench.tape import TapeError, open_tape
from workbench.tape.run_folder import RunFolder

GONE, UNREAD = "gone", "unread"
"""Its folder is no more; its tape cannot be read."""
LOSS = "Loss on held-out text [nat per byte], at the last evaluation."
GOODPUT = "Useful time over allocated time of all learners, from the start of rounds to the close of the run."
PARTICIPATION = (
    "Contributions merged over those expected of learners that were connected and unharmed, in the whole run."
)
TOKENS = "Tokens processed by all learners over the time from the start of rounds to the close of the run [1/s]."


class Whole(NamedTuple):
    """What the tape of a run that is over says.

    Attributes
    ----------
    state : str
        ``finished``, ``stopped``, ``cut_off``, or `GONE` or `UNREAD`.
    reason : str
        Of its end, as recorded.
    merges, wanted : int
    numbers : dict
        Of `workbench.analysis.summary.summary`; empty where nothing can be read.
    """

    state: str
    reason: str = ""
    merges: int = 0
    wanted: int = 0
    numbers: dict[str, Any] = {}  # noqa: RUF012  # nobody writes into it


def whole_run(path: Path) -> Whole:
    """Read what a run came to.  Takes a second for some hundred thousand events."""
    if not RunFolder(path).config.is_file():
        return Whole(GONE)
    try:
        tape = open_tape(path)
        told = facts(tape)
        return Whole(told["state"], told["state_reason"], told["merges"], told["merges_wanted"], summary(tape))
    except (TapeError, ConfigError, OSError):
        return Whole(UNREAD)


def sentence(over: tuple[int, str], whole: Whole | None) -> str:
    """How a run ended; ``whole``: None while that is being read.

    Examples
    --------
    >>> sentence((0, ""), Whole("stopped", "stopped", 660, 100_000))
    'The run is over: stopped by hand after 660 of 100,000 merges.'
    >>> sentence((0, ""), Whole("finished", "rounds", 300, 300))
    'The run is over: all 300 merges are done.'
    >>> sentence((3, "the syncer was lost"), None)
    'The run is over: the syncer was lost (exit code 3).'
    """
    code, line = over
    if whole is not None and whole.state == GONE:
        return "The run is over: its folder is gone, and its tape and logs with it."
    done = f"{whole.merges:,} of {whole.wanted:,} merges" if whole is not None and whole.wanted else ""
    if code or line:
        said = f"{line or 'it failed'} (exit code {code})"
        return f"The run is over: {said}{f', after {done}' if done else ''}."
    if whole is None or whole.state == UNREAD:
        return "The run is over."
    if whole.state == FINISHED:
        return f"The run is over: all {whole.merges:,} merges are done."
    hand = "stopped by hand" if whole.reason == "stopped" else f"ended early ({whole.reason or 'cut off'})"
    return f"The run is over: {hand} after {done}."


def way_on(path: Path, whole: Whole | None, tape: str, runs: str) -> str:
    """What may be done next, as HTML; ``tape``, ``runs``: addresses."""
    choose = f'<a href="{escape(runs)}">choose another run</a>'
    if whole is not None and whole.state == GONE:
        return f"Nothing of it can be looked through any more: {choose}."
    look = f'Step through what it did: <a href="{escape(tape)}">open its tape</a>.'
    if whole is None or whole.state not in (STOPPED, CUT_OFF):
        return look
    return f"{look}{resume_html(path)}"


def resume_html(path: Path) -> str:
    """How to go on with a run that was stopped or lost."""
    return f" To go on with it: <code>{escape(f'workbench resume {shlex.quote(str(path))}')}</code>"


def was_lost(path: Path) -> bool:
    """Whether a run of real processes failed, or its supervisor left without a word."""
    outcome = read_outcome(path)
    return outcome[0] != 0 if outcome is not None else (path / PLAN_FILE).exists()


def ended_html(whole: Whole | None, status: dict[str, Any]) -> str:
    """Vitals of a run that is over: of the whole run, from its tape; nothing of its last moment."""
    known = whole is not None and bool(whole.numbers)
    numbers: dict[str, Any] = whole.numbers if whole is not None else {}
    more = "whole run" if known else "being read from the tape" if whole is None else "not on any tape"
    tokens, time_s = numbers.get("tokens_processed"), numbers.get("time_s")
    rate = f"{tokens / time_s:,.0f}" if tokens and time_s else "–"
    merges = whole.merges if whole is not None and known else status["merges"]
    cards = [
        style.vital("validation loss", _number(numbers.get("val_loss_last"), ".3f"), _first(numbers, more), LOSS),
        style.vital("goodput", _number(numbers.get("goodput"), ".0%"), more, GOODPUT),
        style.vital("participation", _number(numbers.get("participation"), ".0%"), more, PARTICIPATION),
        style.vital("quorum", "–", "ended", QUORUM),
        style.vital("tokens per second", rate, more, TOKENS),
        style.vital("merges", f"{merges:,}", f"of {status['rounds']:,}", MERGES),
    ]
    return f'<div class="vitals">{"".join(cards)}</div>'


def _first(numbers: dict[str, Any], more: str) -> str:
    if not numbers:
        return more
    if numbers["val_loss_last"] is None:
        return "nothing evaluated"
    first = numbers["val_loss_first"]
    return "at the end" if first is None else f"at the end; {first:.3f} at the start"


def _number(value: float | None, how: str) -> str:
    return "–" if value is None else format(value, how)
