"""Validation loss: the curve, its points, and what it took to reach given losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from workbench.cli import glyphs, output, words

Report = Mapping[str, Any]
POINTS_MAX = 20
HEIGHT = 8
SCALE = 12
"""Cells beside the curve."""


def show(report: Report, width: int) -> Iterator[Any]:
    """Yield the validation loss."""
    curve = report["curve"]
    if not report["evaluations"]:
        yield "no evaluations on this tape (eval_every = 0, or the run ended before the first)"
        return
    best = f", best {report['best']:.3f}" if report["best"] < report["last"] else ""
    yield Text(f"validation loss {curve['loss'][0]:.3f} → {report['last']:.3f} nats/byte{best}", style="bold")
    first = 1 if report["first"] is not None else 0
    if report["evaluations"] > first + 1:
        merges = curve["merges"][first:]
        ends = (f"{merges[0]:,}", "merges", f"{merges[-1]:,}")
        cells = min(width, 120) - SCALE
        yield Text("\n".join(glyphs.curve(merges, curve["loss"][first:], cells, HEIGHT, ends)))
        if first:
            yield Text(f"the untrained model ({report['first']:.3f}) is not drawn", style="dim")
    yield ""
    yield from points(curve)
    if report["reached"]:
        yield ""
        yield reached_table(report["reached"])


def points(curve: Report) -> Iterator[Any]:
    """Yield the evaluations, of many some at equal distances and both ends."""
    every = len(curve["loss"])
    shown = (
        range(every) if every <= POINTS_MAX else [round(i * (every - 1) / (POINTS_MAX - 1)) for i in range(POINTS_MAX)]
    )
    rows = [
        (
            words.count(curve["merges"][at]),
            words.count(curve["tokens_processed"][at]),
            words.count(curve["tokens"][at]),
            words.seconds(curve["time_s"][at]),
            f"{curve['loss'][at]:.4f}",
        )
        for at in shown
    ]
    heads = (">merges", ">tokens processed", ">tokens merged", ">time", ">loss [nats/byte]")
    yield output.aligned("", heads, rows)
    if every > len(rows):
        yield f"not shown: {every - len(rows):,} evaluations between these (--rows 0 or --json has all)"


def reached_table(rows: list[Report]) -> Any:
    """Return what it took to reach each loss for the first time."""
    table = [
        (
            f"{row['loss']:g}",
            *(words.count(row[name]) for name in ("merges", "tokens_processed", "tokens")),
            words.seconds(row["time_s"]),
        )
        if row["merges"] is not None
        else (f"{row['loss']:g}", "not reached", "", "", "")
        for row in rows
    ]
    title = "to reach a loss for the first time (straight lines between evaluations)"
    return output.aligned(title, (">loss", ">merges", ">tokens processed", ">tokens merged", ">time"), table)
