"""A run that was imported from the logs of another trainer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from workbench.cli import output, words

Report = Mapping[str, Any]
LEARNERS_MAX = 40


def show(report: Report, width: int) -> Iterator[Any]:
    """Yield what the tape holds, and what it cannot tell."""
    about = report["imported"]
    yield ""
    yield output.pairs("", list(numbers(report, about)))
    yield ""
    yield from learners(report["learners"])
    yield ""
    yield Text("derived from the log", style="bold")
    for note in about["notes"]:
        yield Text(f"- {note}")
    if about["placed_by_time"]:
        yield Text(
            f"- {words.plural(about['placed_by_time'], 'participant')} of syncs that they do not report themselves, "
            "placed by time stamps"
        )
    yield Text("cannot be told", style="bold")
    reasons: dict[str, list[str]] = {}
    for name, reason in report["untold"].items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        yield Text(f"- {', '.join(names)}: {reason}")


def numbers(report: Report, about: Report) -> Iterator[tuple[str, str]]:
    """Yield the numbers of the run as a whole."""
    lines = sum(file["lines"] for file in about["files"])
    skipped = f", {about['skipped_lines']:,} of neither" if about["skipped_lines"] else ""
    torn = f", {words.plural(about['torn_lines'], 'line')} cut off at the end" if about["torn_lines"] else ""
    yield "logs", f"{words.plural(len(about['files']), 'file')}, {words.plural(lines, 'line')}{skipped}{torn}"
    waits = report["between_syncs_s"]
    between = f", {words.three(waits, words.seconds)} apart (median, p95, max)" if waits["count"] else ""
    yield "syncs", f"{report['syncs']:,}{between}"
    yield "participation", words.percent(report["participation"])
    yield "steps in a contribution", f"{words.three(report['staleness']['steps'])} (median, p95, max)"
    stale = report["staleness"]["versions"]
    yield (
        "staleness in versions",
        f"{words.three(stale)}, of {words.plural(stale['count'], 'contribution')} with a known base",
    )
    yield "counted over", f"{words.seconds(report['run']['duration_s'])}, from the first report of the log to its last"
    yield "goodput", "cannot be told" if report["goodput"] is None else words.percent(report["goodput"])


def learners(rows: list[Report]) -> Iterator[Any]:
    """Yield a row for each replica."""
    shown, hidden = output.some(rows, LEARNERS_MAX)
    table = [
        (
            words.label(row["learner"]),
            row["name"],
            words.count(row["steps"]),
            words.count(row["tokens"]) if row["tokens"] else "",
            words.count(row["syncs"]),
            words.percent(row["participation"]),
            words.count(row["steps_per_sync"]),
            str(row["lives"]),
            "" if row["goodput"] is None else words.percent(row["goodput"]),
        )
        for row in shown
    ]
    heads = ("", "replica", ">steps", ">tokens", ">syncs", ">particip.", ">steps/sync", ">lives", ">goodput")
    yield output.aligned("replicas", heads, table)
    if hidden:
        yield hidden
