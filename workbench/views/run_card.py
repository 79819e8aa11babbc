"""A run of real processes as a card: now, without waiting for anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.config import ConfigError
from workbench.engine.launch import Run
from workbench.engine.layout import CONTROL_FILE
from workbench.views import markup
from workbench.views.palette import GREEN, VERMILLION
from workbench.views.states import (
    COLOURS,
    STATES,
    absent,
    kept_out,
    remaining,
    silence,
    since,
    state_of,
    syncer_silence,
)

NAMED_MAX = 8
STEPPING = ("training", "slow", "stalled", "healing", "quarantined")

Status = dict[str, Any]


def run_card(run: Run) -> str:
    """HTML of a run: its status while it goes on, how it ended afterwards."""
    title = str(run.path)
    if not run.running:
        return markup.card(title, "run", _over(run))
    status = status_of(run)
    if status is None:
        return markup.card(title, "run", [markup.verdict("…", GREEN, "starting: its supervisor does not listen yet")])
    return markup.card(title, "run", status_parts(status))


def status_of(run: Run) -> Status | None:
    """Status of a run, None while nobody answers."""
    if not (run.path / CONTROL_FILE).exists():
        return None
    try:
        return run.status()
    except ConfigError:
        return None


def status_parts(status: Status) -> list[str]:
    """What a card says of a run that goes on."""
    merges, wanted = int(status["merges"]), int(status["rounds"])
    loss = status.get("val_loss")
    lines = [
        ("phase", f"{status['phase'].replace('_', ' ')}, {since(status)}"),
        ("validation loss", "no evaluation yet" if loss is None else f"{loss:.3f} nat per byte"),
        ("last merge", _last_merge(status)),
        ("quorum", _quorum(status)),
        ("syncer", syncer_silence(status)),
        ("storage", str(status.get("storage_full") or "")),
    ]
    rows = [_learner(one) for one in status["learners"]]
    heads = ("learner", "state", "step", "loss", "behind", "tokens/s", "")
    return [
        markup.bar(merges / max(wanted, 1), f"{merges:,} of {wanted:,} merges", GREEN),
        markup.facts(lines),
        markup.table(heads, rows, right=(False, False, True, True, True, True, False)),
        markup.note("loss: nat per byte of the last batch; behind: versions, mean over fragments"),
    ]


def _last_merge(status: Status) -> str:
    last = status.get("last_merge")
    if not last:
        return "none yet"
    ago_s = max(0.0, status["elapsed_s"] - last["time_s"])
    return f"{ago_s:.1f} s ago, round {last['round']:,}, fragment {last['fragment']}, of {_labels(last['learners'])}"


def _quorum(status: Status) -> str:
    if "quorum" not in status:
        return ""
    there = sum(bool(one.get("counts")) for one in status["learners"])
    text = f"{status['quorum']} needed, {there} of {remaining(status['learners'])} there"
    if status.get("gathers"):
        return f"waits for learners: {there} of {status['quorum']} there"
    if not status.get("quorum_lost"):
        return text
    waited_for, gone = absent(status["learners"])
    ended = "".join(f", {_labels(learners)} {state}" for state, learners in gone.items())
    release = "".join(f"; run.release({m}) lets L{m} in" for m in kept_out(status)[:1])
    return f"✕ LOST: {text}{ended}{f', waiting for {_labels(waited_for)}' if waited_for else ''}{release}"


def _labels(learners: Sequence[int]) -> str:
    if len(learners) > NAMED_MAX:
        return f"{len(learners)} learners"
    return ", ".join(f"L{m}" for m in learners) or "nobody"


def _learner(one: Status) -> markup.Row:
    state = state_of(one)
    seen = one if state in STEPPING else {"step": one.get("step")}
    numbers = ((seen.get("step"), ",.0f"), (seen.get("loss"), ".3f"), (seen.get("behind"), ".2f"),
               (seen.get("tokens_per_s"), ",.0f"))  # fmt: skip
    starts = max(one.get("number") or 0, one.get("starts") or 0)
    said = str(one.get("how") or "") if state in ("down", "failed", "ended") else ""
    said = silence(one) if state == "silent" else said
    return (
        str(one["label"]),
        markup.Cell(state, STATES[state], COLOURS[state]),
        *("" if value is None else format(value, how) for value, how in numbers),
        said or (f"start {starts}" if starts > 1 else ""),
    )


def _over(run: Run) -> list[str]:
    code, line = run.outcome()
    sign, colour = ("✓", GREEN) if code == 0 else ("✕", VERMILLION)
    said = line or "it ended as it should"
    return [
        markup.verdict(sign, colour, f"over: {said} (exit code {code})"),
        markup.note(f'its tape: run.tape, or wb.open_tape("{run.path}")'),
    ]
