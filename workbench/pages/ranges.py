"""The chosen part of a run, as a table of counts, means and totals with their units."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from workbench.analysis.ranges import within
from workbench.pages.style import do, wide

NOTHING = (
    '<h2>Chosen part</h2><p class="quiet">Drag over the lanes or a figure over time, or press R at its start and again '
    "at its end: counts, means and totals of that time stand here, and playing repeats it.</p>"
)


def range_html(tape: Any, start_s: float, end_s: float) -> str:
    """The table.  Takes up to seconds of a long tape."""
    found = within(tape, start_s, end_s)
    columns = (found[name].values.tolist() for name in ("count", "mean", "mean_unit", "total", "total_unit"))
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td class='num'>{count:,}</td><td class='num'>{_number(mean)}</td>"
        f"<td>{escape(_unit(mean, mean_unit))}</td><td class='num'>{_number(total)}</td>"
        f"<td>{escape(_unit(total, total_unit))}</td></tr>"
        for name, count, mean, mean_unit, total, total_unit in zip(
            found["quantity"].values.tolist(), *columns, strict=True
        )
    )
    head = f"<tr><th></th>{_head('count')}{_head('mean')}<th></th>{_head('total')}<th></th></tr>"
    table = f"<table class='range'>{head}{rows}</table>"
    ways = do("range", "clear", "clear: choose no part", how="clear") + do("range", "look closer", how="fit")
    return (
        f"<h2>Chosen part: {start_s:.3f} to {end_s:.3f} s ({end_s - start_s:.3f} s)</h2>"
        f"{wide(table, 'numbers of the chosen part')}<div class='dos'>{ways}</div>"
    )


def _head(name: str) -> str:
    return f"<th class='num'>{name}</th>"


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _unit(value: float, unit: str) -> str:
    return unit.replace("learner s", "learner\N{NO-BREAK SPACE}s") if np.isfinite(value) and unit != "1" else ""
