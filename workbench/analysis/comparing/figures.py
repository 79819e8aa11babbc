"""End figures of several runs, their differences, and intervals over runs that differ in their seed only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from workbench.algorithms.digest import digest
from workbench.analysis.arrays.intervals import mean_difference, mean_interval
from workbench.analysis.summary import summary

Figures = dict[str, float | None]
"""Numbers of a run at its end, None where there is nothing to tell."""
LEVEL = 0.95
"""Coverage of the intervals."""


def figures_of(tape: xr.DataTree) -> Figures:
    """What a tape can tell of `workbench.analysis.summary`."""
    found: Figures = summary(tape)
    untold = tape.wb.untold
    return {name: None if name in untold or _of_ledger(name, untold) else value for name, value in found.items()}


def _of_ledger(name: str, untold: Mapping[str, str]) -> bool:
    return "ledger" in untold and name.startswith("tokens_")


def differences(figures: Sequence[Figures]) -> dict[str, list[float | None]]:
    """Of each figure the difference of each run to the first; None where either has none."""
    first = figures[0]
    return {name: [_less(run[name], first[name]) for run in figures] for name in first}


def _less(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def distinct(tapes: Sequence[xr.DataTree], runs: Sequence[int]) -> list[int]:
    """The runs of a group without those that are bit for bit another: they are no further observation."""
    found: dict[int, int] = {}
    for number in runs:
        merges = np.ascontiguousarray(tapes[number]["merges"].dataset["digest"].values)
        found.setdefault(digest(merges) if len(merges) else -1 - number, number)
    return sorted(found.values())


def group_rows(figures: Sequence[Figures], groups: Sequence[list[int]], seeds: Sequence[Any]) -> list[dict[str, Any]]:
    """Each group with mean and t-interval of every figure, and its difference to the first group.

    Parameters
    ----------
    figures : sequence of Figures
        By run.
    groups : sequence of list of int
        Numbers of the runs that count in each group.
    seeds : sequence
        By run; groups with the same seeds, once each, are compared in pairs.

    Returns
    -------
    list of dict
        ``runs``, ``n``, ``level``, ``method`` (of the difference), ``figures``: by name ``mean``, ``low``, ``high`` and
        ``difference`` with the same three; None where a run has no such figure, or where there are too few runs.
    """
    rows = []
    for group in groups:
        paired = group != groups[0] and _paired([seeds[i] for i in group], [seeds[i] for i in groups[0]])
        order = [sorted(runs, key=lambda i: str(seeds[i])) if paired else runs for runs in (group, groups[0])]
        told, methods = {}, set()
        for name in figures[0]:
            mine, first = ([figures[i][name] for i in runs] for runs in order)
            told[name], method = _told(mine, first, paired=paired, same=group == groups[0])
            methods.add(method)
        method = next(iter(methods - {"none"}), "none")
        rows.append({"runs": group, "n": len(group), "level": LEVEL, "method": method, "figures": told})
    return rows


def _paired(seeds: list[Any], others: list[Any]) -> bool:
    return sorted(map(str, seeds)) == sorted(map(str, others)) and len(set(map(str, seeds))) == len(seeds)


def _told(
    mine: list[float | None], first: list[float | None], *, paired: bool, same: bool
) -> tuple[dict[str, Any], str]:
    known, others = [v for v in mine if v is not None], [v for v in first if v is not None]
    if len(known) < len(mine):
        return {"mean": None, "low": None, "high": None, "difference": None}, "none"
    found = _three(mean_interval(known, LEVEL))
    if same or len(others) < len(first):
        return {**found, "difference": None}, "none"
    difference = mean_difference(known, others, paired=paired, level=LEVEL)
    return {**found, "difference": _three(difference[:3])}, difference.method


def _three(values: Sequence[float]) -> dict[str, float | None]:
    return {
        name: None if math.isnan(value) else value for name, value in zip(("mean", "low", "high"), values, strict=True)
    }
