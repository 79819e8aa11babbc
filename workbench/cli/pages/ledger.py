"""The token ledger: fates, reasons, learners, and whether the books balance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from workbench.cli import glyphs, output, words

Report = Mapping[str, Any]
FATES = ("merged", "overwritten", "not_merged", "blended", "lost", "rolled_back", "local")
MEANINGS = {
    "merged": "entered a merge",
    "overwritten": "made after the capture",
    "not_merged": "folded over, none merged",
    "blended": "mixed into by a fold",
    "lost": "died, healed or removed",
    "rolled_back": "behind the cut of a resume",
    "local": "open at the end of the tape",
}
BAR = 18
LEARNERS_MAX = 64


def show(report: Report, width: int) -> Iterator[Any]:
    """Yield the ledger."""
    yield verdict(report)
    yield fates_table(report, width)
    if report["reasons"]:
        yield ""
        yield reasons_table(report)
    yield ""
    rows, hidden = output.some(report["by_learner"], LEARNERS_MAX)
    yield learners_table(rows, [fate for fate in FATES if report["fates"][fate]])
    if hidden:
        yield hidden


def verdict(report: Report) -> Text:
    """Return whether the books balance, with the numbers."""
    books = f"{report['learners']} learners x {report['fragments']} fragments"
    if report["balanced"]:
        return Text(f"token ledger: balanced, {words.count(report['processed'])} tokens in {books}", style="green")
    return Text(f"token ledger: NOT balanced in {books}: {report['fault']}", style="bold red")


def fates_table(report: Report, width: int) -> Any:
    """Return tokens by fate with their shares as bars; fates without any are left out."""
    cells = BAR + max(0, min(width - 80, 40))
    rows = [
        (
            words.word(fate),
            words.count(report["fates"][fate]),
            words.percent(report["shares"][fate]),
            f"{glyphs.bar(report['shares'][fate], cells):<{cells}}",
            MEANINGS[fate],
        )
        for fate in sorted(FATES, key=lambda fate: -report["fates"][fate])
        if report["fates"][fate]
    ]
    return output.aligned("", ("fate", ">tokens", ">share", "of processed", ""), rows)


def reasons_table(report: Report) -> Any:
    """Return why tokens were not merged, lost or blended."""
    rows = [
        (
            words.word(row["fate"]),
            words.word(row["reason"]),
            words.count(row["tokens"]),
            words.percent(row["share"]),
            words.MEANINGS.get(row["reason"], ""),
        )
        for row in report["reasons"]
    ]
    return output.aligned("reasons", ("fate", "reason", ">tokens", ">share", "the learner, or its contribution"), rows)


def learners_table(rows: Any, fates: list[str]) -> Any:
    """Return tokens of each learner by fate."""
    table = [
        (
            words.label(row["learner"]),
            words.count(row["processed"]),
            *(words.count(row["fates"][fate]) for fate in fates),
            words.percent(row["merged_share"]),
        )
        for row in rows
    ]
    heads = ("learner", ">processed", *(f">{words.word(fate)}" for fate in fates), ">merged share")
    return output.aligned("tokens by learner", heads, table)
