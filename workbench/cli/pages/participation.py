"""Participation: who was in the merges, and what kept the others out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from workbench.cli import glyphs, output, words

Report = Mapping[str, Any]
LEARNERS_MAX = 64


def show(report: Report, width: int) -> Iterator[Any]:
    """Yield participation."""
    whole = f"participation {words.percent(report['participation'])}"
    yield Text(f"{whole}: {report['included']:,} of {report['expected']:,} expected contributions", style="bold")
    yield Text(
        "expected: healed, connected, and under no injected fault from the opening of the round to its close",
        style="dim",
    )
    yield ""
    rows, hidden = output.some(report["by_learner"], LEARNERS_MAX)
    yield learners_table(rows)
    if hidden:
        yield hidden
    yield Text("expected = included + left out; extra: merged though not expected", style="dim")
    yield ""
    yield over_time(report, rows)
    if report["left_out"] or report["not_expected"]:
        yield ""
        yield reasons_table(report)
        for reason, remedy in report["remedies"].items():
            yield Text(f"helps against {words.word(reason)}: {remedy}", style="yellow")


def learners_table(rows: Any) -> Any:
    """Return counts of each learner; each row adds up to the merges of the run."""
    table = [
        (
            words.label(row["learner"]),
            words.percent(row["participation"]),
            words.count(row["included"]),
            words.count(row["expected"]),
            words.count(row["left_out_count"]),
            words.count(row["not_expected_count"]),
            words.count(row["included_unexpected"]),
            words.count(row["contributed"]),
        )
        for row in rows
    ]
    heads = ("", ">participation", ">included", ">expected", ">left out", ">not expected", ">extra", ">in merges")
    return output.aligned("", heads, table)


def over_time(report: Report, rows: Any) -> Any:
    """Return participation over the time of the run, one cell for each part of it."""
    course, learners = report["over_time"], len(report["by_learner"])
    edges = course["edges_s"]
    lines = [(words.label(row["learner"]), glyphs.sparkline(row["over_time"]), "") for row in rows]
    lines.append(("all", glyphs.sparkline(course["participation"]), "included of the expected"))
    mean = glyphs.sparkline(course["contributors"], 0.0, float(learners))
    lines.append(("in a merge", mean, f"mean of {learners} learners"))
    span = f"{words.seconds(edges[0])} to {words.seconds(edges[-1])}"
    title = f"over time, {span}, {len(edges) - 1} parts (blank: 0; dot: not expected, no merge)"
    return output.aligned(title, ("", "", ""), lines)


def reasons_table(report: Report) -> Any:
    """Return why learners were not in merges, with the learners that it struck."""
    rows = []
    for kind in ("left_out", "not_expected"):
        for reason, number in report[kind].items():
            who = [row["learner"] for row in report["by_learner"] if reason in row[kind]]
            meaning = words.MEANINGS.get(reason, "")
            rows.append((words.word(kind), words.word(reason), words.count(number), shortened(who), meaning))
    return output.aligned("why not in a merge", ("", "reason", ">times", "learners", "the learner"), rows)


def shortened(learners: list[int]) -> str:
    """Return the labels of a few learners, the number of many."""
    return words.labels(learners) if len(learners) <= 4 else f"{len(learners)} learners"
