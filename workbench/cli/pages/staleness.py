"""Staleness of merged contributions, how far learners are behind, and the effective period."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from workbench.cli import output, words

Report = Mapping[str, Any]
LEARNERS_MAX = 64
MEANINGS = {
    "versions": "version merged into - 1 - base version",
    "steps": "own steps since the base was folded",
    "rounds": "round - round of the base",
    "seconds": "capture - fold of the base",
    "lag": "merge - capture",
}
TIMES = ("seconds", "lag")
IN_TABLE = {"seconds": words.plain, "lag": words.milliseconds}
"""How times stand in narrow columns, whose heads hold the unit."""


def show(report: Report, width: int) -> Iterator[Any]:
    """Yield staleness."""
    yield Text(f"staleness of {words.plural(report['contributions'], 'merged contribution')}", style="bold")
    yield whole_table(report)
    yield ""
    rows, hidden = output.some(report["by_learner"], LEARNERS_MAX)
    yield from learners_table(rows, report["behind"])
    if hidden:
        yield hidden
    yield ""
    yield from periods(report)


def shown(name: str) -> Any:
    """Return how values of a measure are written."""
    return words.seconds if name in TIMES else words.plain


def whole_table(report: Report) -> Any:
    """Return the measures over all contributions."""
    rows = []
    for name, meaning in MEANINGS.items():
        spread = report["all"][name]
        cells = (shown(name)(spread[which]) for which in ("median", "p95", "max"))
        steady = f" (H = {report['period']})" if name == "rounds" else ""
        rows.append((name, *cells, meaning + steady))
    return output.aligned("", ("", ">median", ">p95", ">max", ""), rows)


def learners_table(rows: Any, behind: Any) -> Iterator[Any]:
    """Yield the measures of each learner: median / p95 / max."""
    table = []
    for row in rows:
        late = behind[row["learner"]]
        cells = [words.three(row[name], IN_TABLE.get(name, words.plain), "/") for name in MEANINGS]
        table.append((words.label(row["learner"]), *cells, words.three(late, words.tenths, "/")))
    heads = ("", ">versions", ">steps", ">rounds", ">seconds", ">lag [ms]", ">behind")
    yield output.aligned("by learner: median/p95/max", heads, table)
    yield Text("behind: mean over fragments of version - base, after each merge while connected", style="dim")


def periods(report: Report) -> Iterator[Any]:
    """Yield the effective period of each learner, with a warning where it is far from H."""
    period = report["period"]
    rows, hidden = output.some(report["effective_period"], LEARNERS_MAX)
    low, high = f"{0.5 * period:g}", f"{1.5 * period:g}"
    table = [
        (
            words.label(row["learner"]),
            words.count(row["count"]),
            *(words.plain(row[which]) for which in ("median", "p95", "max")),
            words.count(row["below"]),
            words.count(row["above"]),
        )
        for row in rows
    ]
    heads = ("", ">folds", ">median", ">p95", ">max", f">below {low}", f">above {high}")
    yield output.aligned(f"effective period: own steps between two folds of a fragment, H = {period}", heads, table)
    if hidden:
        yield hidden
    for row in report["effective_period"]:
        if row["unusual"]:
            yield Text(warning(row, period), style="yellow")


def warning(row: Report, period: int) -> str:
    """Return what an effective period far from H means."""
    who, steps = words.label(row["learner"]), words.plain(row["median"])
    if row["median"] < period:
        why = "it is slower than the others, and much of its work is folded over before it is merged"
        return f"warning: {who} folds a fragment every {steps} steps, below 0.5 x H = {0.5 * period:g}: {why}"
    why = "UPDATEs reach it late, and it trains on old parameters"
    return f"warning: {who} folds a fragment every {steps} steps, above 1.5 x H = {1.5 * period:g}: {why}"
