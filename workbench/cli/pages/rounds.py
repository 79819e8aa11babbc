"""Rounds: where their time went, how many learners a merge had, and the waits between merges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from workbench.cli import glyphs, output, words

Report = Mapping[str, Any]
BAR = 40
FAULTS_SHOWN = 20
UNLIKE = 1.5
"""A wait is explained if it lasted so many times as long as a merge was due at a stretch."""


def show(report: Report, width: int) -> Iterator[Any]:
    """Yield the rounds."""
    yield Text(headline(report), style="bold")
    for kind in ("skipped", "aborted"):
        for reason, number in report[kind].items():
            meaning = words.MEANINGS.get(reason, "")
            yield f"{kind}: {words.plural(number, 'round')}, {words.word(reason)}{': ' if meaning else ''}{meaning}"
    if report["restarted"]:
        yield f"restarted: {words.plural(report['restarted'], 'round')} found open after a restart of the syncer"
    if report["quorums_again"]:
        yield f"went back: {words.plural(report['quorums_again'], 'time')} fewer than K were left after the quorum"
    yield ""
    yield durations_table(report["durations_s"])
    yield ""
    yield contributors_table(report["contributors"], width)
    yield ""
    yield from waits(report)
    if report["at_faults"]:
        yield ""
        yield faults_table(report["at_faults"])
        hidden = len(report["at_faults"]) - FAULTS_SHOWN
        if hidden > 0:
            yield f"not shown: {words.plural(hidden, 'later fault')} (--json has all)"


def headline(report: Report) -> str:
    """Return how the opened rounds ended."""
    ends = ", ".join(f"{number:,} {outcome}" for outcome, number in report["outcomes"].items())
    return f"{words.plural(report['opened'], 'round')} opened: {ends or 'none'}"


def durations_table(durations: Report) -> Any:
    """Return the time that merged rounds spent in each state."""
    rows = [
        (meaning, *(words.seconds(durations[state][which]) for which in ("median", "p95", "max")))
        for state, meaning in words.STATES.items()
    ]
    return output.aligned("time of a merged round", ("", ">median", ">p95", ">max"), rows)


def contributors_table(contributors: list[Report], width: int) -> Any:
    """Return how many merges had how many learners."""
    cells = BAR + max(0, min(width - 80, 40))
    rows = [
        (str(row["learners"]), words.count(row["merges"]), words.percent(row["share"]), glyphs.bar(row["share"], cells))
        for row in contributors
    ]
    return output.aligned("learners in a merge", (">learners", ">merges", ">share", ""), rows)


def waits(report: Report) -> Iterator[Any]:
    """Yield the waits between merges, and those in which a merge was due."""
    between = words.three(report["between_merges_s"], words.seconds)
    yield Text(f"between two merges: {between}  (median / p95 / max)")
    why = not_due(report)
    if why:
        yield Text(f"the longest, {words.seconds(report['between_merges_s']['max'])}: {why}")
    if report["self_stopped_s"]:
        yield Text(f"the syncer itself stood still {words.seconds(report['self_stopped_s'])} in all: counts in no wait")
    available = words.percent(report["merge_availability"])
    if not report["gaps"]:
        yield Text(f"merge availability {available}: never longer due than the shortest bound B possible")
        return
    rows = [
        (
            words.moment(row["start_s"]),
            words.seconds(row["gap_s"]),
            "none" if not math.isfinite(row["bound_s"]) else words.seconds(row["bound_s"]),
            words.seconds(row["excess_s"]) if row["excess_s"] else "",
        )
        for row in report["gaps"]
    ]
    title = f"merge availability {available}: longest times in which a merge was due"
    yield output.aligned(title, (">from", ">lasted", ">bound B", ">beyond B"), rows)
    hidden = report["gaps_found"] - len(rows)
    if hidden > 0:
        yield f"not shown: {words.plural(hidden, 'shorter one')}"


def not_due(report: Report) -> str:
    """Return why the longest wait for a merge is no lack of availability; empty if it is one, or none was long."""
    waited = report["between_merges_s"]
    due_s = max([report["gaps_from_s"], *(row["gap_s"] for row in report["gaps"])])
    if not waited["count"] or waited["max"] <= UNLIKE * due_s:
        return ""
    due = words.seconds(due_s)
    return f"fewer learners than a quorum could contribute then; a merge was due for at most {due} at a stretch"


def faults_table(faults: list[Report]) -> Any:
    """Return the longest wait for a merge around each fault, beside its bound."""
    rows = [
        (
            words.moment(row["start_s"]),
            row["kind"],
            "syncer" if row["learner"] < 0 else f"L{row['learner']}",
            words.seconds(row["for_s"]),
            "" if row["longest_s"] is None else words.seconds(row["longest_s"]),
            words.seconds(row["bound_s"]) if math.isfinite(row["bound_s"]) else "none",
        )
        for row in faults[:FAULTS_SHOWN]
    ]
    title = "longest time between merges around each fault; B from the step times before it"
    return output.aligned(title, (">at", "fault", "of", ">for", ">longest", ">bound B"), rows)
