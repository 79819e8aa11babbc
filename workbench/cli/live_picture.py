"""The picture of a run of real processes: a heading, and one line for each learner, all within the terminal's width.

Every number has a place of its own, so that nothing moves but the digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rich.console import Group
from rich.text import Text

from workbench.cli import words
from workbench.protocol.plans import skipped_line
from workbench.views.states import STATES, absent, kept_out, remaining, silence, since, state_of, syncer_silence

NAMED_MAX = 8
"""Learners that are named one by one; of more only the number is said."""
LABEL_WIDTH = 11
LINE_MAX = 66
"""Characters of a line of the heading that fit a terminal of the usual width."""
STATE_WIDTH = max(len(word) for word in STATES)
COLUMNS = (("step", 8), ("loss", 8), ("behind", 8), ("tokens/s", 10))
LEGEND = ("loss: nats per byte of its last batch", "behind: versions, mean over fragments")
"""What the columns mean: on one line where there is room, else below each other."""
STEPPING = ("training", "slow", "stalled", "healing", "quarantined")
BAD, DIM = "red", "dim"
COLOURS = {
    "training": "green", "slow": "yellow", "healing": "cyan", "starting": "cyan", "waiting": "cyan", "left": "dim",
}  # fmt: skip

Status = dict[str, Any]


class Line(NamedTuple):
    """A line of the heading."""

    label: str
    text: str
    style: str = ""


def picture(status: Status, width: int, height: int) -> Group:
    """Return a run's status as a drawing of at most so many cells."""
    heads = [_heading(one, width) for one in heading(status)]
    whole = "; ".join(LEGEND)
    legend = [_fitted(Text(part, style=DIM), width) for part in ((whole,) if len(whole) <= width else LEGEND)]
    rows = learner_lines(status, width, max(1, height - len(heads) - 3 - len(legend)))
    return Group(*heads, Text(), *rows, *legend)


def heading(status: Status) -> list[Line]:
    """Return the lines above the learners."""
    loss = status.get("val_loss")
    total = f"{status['rounds']:,}"
    first = (
        f"{since(status):>19}, merges {status['merges']:>{len(total)},} of {total}"
        f", round {max(status.get('round', 0), 0):,}"
    )
    lines = [
        Line(status["phase"].replace("_", " "), first, "bold"),
        Line("loss", "no evaluation yet" if loss is None else f"{loss:.3f} nats per byte (validation)"),
        Line("last merge", _last_merge(status)),
        _quorum(status),
        Line("grace", _grace(status)),
    ]
    if what := remedy(status, LINE_MAX):
        lines.append(Line("to go on", what, BAD))
    if said := syncer_silence(status):
        lines.append(Line("syncer", said, BAD))
    if status.get("storage_full"):
        lines.append(Line("storage", status["storage_full"], BAD))
    return lines


def _last_merge(status: Status) -> str:
    last = status.get("last_merge")
    if not last:
        return "none yet"
    ago_s = max(0.0, status["elapsed_s"] - last["time_s"])
    return f"{ago_s:4.1f} s ago, round {last['round']:,}, fragment {last['fragment']}, of {named(last['learners'])}"


def _quorum(status: Status) -> Line:
    if "quorum" not in status:
        return Line("quorum", "the syncer is starting")
    there = [one for one in status["learners"] if one.get("counts")]
    waited_for, gone = absent(status["learners"])
    waiting = f", waiting for {named(waited_for)}" if waited_for else ""
    ended = "".join(f", {named(learners)} {state}" for state, learners in gone.items())
    if status.get("quorum_lost"):
        since_s = status["elapsed_s"] - status["quorum_lost_since_s"]
        counts = f"{len(there)} of {status['quorum']} there"
        return Line("quorum", f"LOST: {counts}{ended}{waiting} since {since_s:.1f} s", f"bold {BAD}")
    if status.get("gathers"):
        return Line("quorum", f"waits for learners: {len(there)} of {status['quorum']} there{ended}{waiting}")
    counts = f"{len(there)} of {remaining(status['learners'])} there"
    return Line("quorum", f"{status['quorum']} needed, {counts}{ended}{waiting}")


def remedy(status: Status, most: int = 10**6) -> str:
    """Return what to type where nothing is merged since a learner is quarantined; empty where that is not so.

    The run is named if the line then has at most so many characters, else it is RUN.
    """
    found = kept_out(status)
    if not found:
        return ""
    whole, short = (f"workbench control {name} release L{found[0]}" for name in (status.get("run", "RUN"), "RUN"))
    return whole if len(whole) <= most else short


def _grace(status: Status) -> str:
    window_s = status.get("window_s")
    if window_s is None or window_s < 0:
        return str(status.get("grace", "not known yet"))
    return f"{status['grace']}, last window {window_s * 1e3:6.1f} ms"


def named(learners: list[int]) -> str:
    """Return learners by name, or how many they are."""
    if len(learners) > NAMED_MAX:
        return f"{len(learners)} learners"
    return words.labels(learners) or "nobody"


def learner_lines(status: Status, width: int, most: int) -> list[Text]:
    """Return a head and at most ``most`` lines; of more learners those that only train are left out first."""
    learners = status["learners"]
    labels = max([len("learner"), *(len(one["label"]) for one in learners)])
    columns = "".join(f"{name:>{cells}}" for name, cells in COLUMNS)
    head = f"{'learner':<{labels}}  {'state':<{STATE_WIDTH + 2}}{columns}"
    shown = learners
    if len(learners) > most:
        troubled = sorted(learners, key=lambda one: (state_of(one) == "training", one["learner"]))
        shown = sorted(troubled[: max(0, most - 1)], key=lambda one: one["learner"])
    lines = [_fitted(Text(head, style=DIM), width)]
    lines += [_fitted(_learner_line(one, labels, status["elapsed_s"]), width) for one in shown]
    if len(shown) < len(learners):
        lines.append(_fitted(Text(f"not shown: {len(learners) - len(shown)} learners", style=DIM), width))
    return lines


def _learner_line(one: Status, labels: int, now_s: float) -> Text:
    state = state_of(one)
    style = COLOURS.get(state, BAD)
    text = Text(f"{one['label']:<{labels}}  ")
    text.append(f"{STATES[state]} {state:<{STATE_WIDTH}}", style=style)
    seen = one if state in STEPPING else {"step": one.get("step")}
    values = (
        (seen.get("step"), ",.0f"), (seen.get("loss"), ".3f"), (seen.get("behind"), ".2f"),
        (seen.get("tokens_per_s"), ",.0f"),
    )  # fmt: skip
    for (_, cells), (value, how) in zip(COLUMNS, values, strict=True):
        text.append(f"{'' if value is None else format(value, how):>{cells}}")
    note = note_of(one, state)
    return text.append(f"  {note}", style=DIM) if note else text


def note_of(one: Status, state: str) -> str:
    """Return what there is to add to a learner's state."""
    starts = max(one["number"], one.get("starts", 0))
    if state in ("down", "failed", "ended", "removed"):
        return one.get("how", "")
    if one["state"] == "never seen":
        return "never seen"
    parts = [
        silence(one) if state == "silent" else "",
        "flagged" if one.get("flagged") else "",
        f"start {starts}" if starts > 1 else "",
        f"on {_short(one['where'])}" if one.get("where") else "",
    ]
    return ", ".join(part for part in parts if part)


def _short(where: str) -> str:
    """Host and pid without the host's domain, for which a line has no room; an address stays whole."""
    host, comma, rest = where.partition(",")
    return f"{host if host.replace('.', '').isdecimal() else host.partition('.')[0]}{comma}{rest}"


def failures(status: Status) -> dict[tuple[str, int], str]:
    """Return one line for each process that said why it failed, by label and start."""
    return {
        (one["label"], one["line_of"]): f"{one['label']} failed (start {one['line_of']}): {one['line']}; {one['log']}"
        for one in status["learners"]
        if one.get("line") and one.get("line_of")
    }


def news(status: Status) -> dict[tuple[str, int], str]:
    """Return what is worth a line above the picture, once: failures, and planned faults that were skipped."""
    skipped = status.get("skipped", [])
    return failures(status) | ({("skipped", len(skipped)): skipped_line(skipped)} if skipped else {})


def line(status: Status) -> str:
    """Return a run's status as one line."""
    loss = status.get("val_loss")
    states = " ".join(f"{one['label']} {state}" for one in status["learners"] if (state := state_of(one)) != "training")
    quorum = _quorum(status)
    parts = [
        f"{status['phase']}: merges {status['merges']}/{status['rounds']}",
        since(status, 0),
        "" if loss is None else f"validation loss {loss:.3f}",
        f"quorum {quorum.text}" if quorum.style else "",
        f"to go on: {to_type}" if (to_type := remedy(status)) else "",
        states,
    ]
    return ", ".join(part for part in parts if part)


def changes(status: Status) -> tuple[Any, ...]:
    """Return what a change of is worth a line of its own."""
    states = tuple(state_of(one) for one in status["learners"])
    return status["phase"], status.get("quorum_lost"), states


def _heading(one: Line, width: int) -> Text:
    text = Text(f"{one.label:<{LABEL_WIDTH}} ", style="" if one.style else DIM)
    text.append(one.text, style=one.style or "none")
    return _fitted(text, width)


def _fitted(text: Text, width: int) -> Text:
    text.truncate(width, overflow="ellipsis")
    text.no_wrap = True
    return text
