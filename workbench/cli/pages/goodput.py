"""Goodput, and badput by cause: where the allocated time went."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from workbench.cli import glyphs, output, words

Report = Mapping[str, Any]
LEARNERS_MAX = 64
BAR = 18


def show(report: Report, width: int) -> Iterator[Any]:
    """Yield goodput."""
    allocated = f"{words.seconds(report['useful_s'])} useful of {words.seconds(report['allocated_s'])} allocated"
    yield Text(f"goodput {words.percent(report['goodput'])}: {allocated}", style="bold")
    yield Text(f"uptime {words.percent(report['uptime'])}: some learner made progress", style="dim")
    yield ""
    yield causes_table(report, width)
    yield ""
    causes = [cause for cause in report["causes"] if report["badput"][cause]]
    rows, hidden = output.some(report["by_learner"], LEARNERS_MAX)
    yield learners_table(report, rows, causes)
    if hidden:
        yield hidden
    yield ""
    yield over_time(report, rows)


def causes_table(report: Report, width: int) -> Any:
    """Return all allocated time by what became of it; the shares add up to 1."""
    cells = BAR + max(0, min(width - 80, 40))
    shares = {"useful": report["goodput"], **report["badput"]}
    times_s = {"useful": report["useful_s"], **report["badput_s"]}
    rows = [
        (
            cause,
            words.percent(share),
            words.seconds(times_s[cause]),
            f"{glyphs.bar(share, cells):<{cells}}",
            words.CAUSES.get(cause, "completed steps"),
        )
        for cause, share in shares.items()
        if share or cause == "useful"
    ]
    return output.aligned("", ("", ">share", ">learner time", "of allocated", ""), rows)


def learners_table(report: Report, rows: Any, causes: list[str]) -> Any:
    """Return goodput and badput of each learner, then of all; a row adds up to 100 %."""
    table = [
        (
            words.label(row["learner"]),
            words.seconds(row["allocated_s"]),
            words.percent(row["goodput"]),
            *(words.percent(row["badput"][cause]) for cause in causes),
        )
        for row in rows
    ]
    total = (words.percent(report["badput"][cause]) for cause in causes)
    table.append(("all", words.seconds(report["allocated_s"]), words.percent(report["goodput"]), *total))
    return output.aligned("by learner", ("", ">allocated", ">goodput", *(f">{cause}" for cause in causes)), table)


def over_time(report: Report, rows: Any) -> Any:
    """Return the useful time of each learner over the run, one cell for each part of it."""
    edges = report["edges_s"]
    lines = [(words.label(row["learner"]), glyphs.sparkline(row["over_time"])) for row in rows]
    part = words.seconds(edges[1] - edges[0])
    title = f"useful time, {words.seconds(edges[0])} to {words.seconds(edges[-1])}, {part} a cell"
    return output.aligned(title, ("", ""), lines)
