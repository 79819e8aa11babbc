"""`compare`: two to six runs side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike, fspath
from typing import Any

import xarray as xr

from workbench.analysis.comparing.curves import curves
from workbench.analysis.comparing.divergence import Divergence, first_divergence, incomparable
from workbench.analysis.comparing.figures import Figures, differences, distinct, figures_of, group_rows
from workbench.analysis.comparing.settings import differing, groups_of, over_seeds, settings_of
from workbench.analysis.efficiencies import RunLike, check_axis, opened, tokens_to
from workbench.config import ConfigError

RUNS_MIN, RUNS_MAX = 2, 6
REACHED = ("tokens_processed", "tokens_merged", "time_s", "merges")
"""What it took to reach a loss is told in these."""


@dataclass(frozen=True)
class Comparison:
    """Several runs side by side; the first is what the others are compared with.

    Attributes
    ----------
    labels : list of str
        Name of each run: its folder as it was given, or its identity.
    runs : list of dict
        ``label``, ``run_id``, ``parent`` (label of the run it descends from, its identity if that is not among them,
        or None), ``branch_event`` (event of the parent at which a counterfactual left it), ``class``, ``closed``.
    settings : dict of str to list
        Settings that differ, with the value of each run.
    unknown : list of int
        Runs whose settings are not known: imports.
    divergences : list of Divergence or None
        Of each run against the first; None where nothing differs, or where nothing can be compared.
    incomparable : list of str
        Of each run why it cannot be compared with the first in what was computed; empty where it can.
    figures : list of dict
        Numbers of each run at its end.
    differences : dict of str to list
        Of each figure to that of the first run.
    groups : list of dict
        Runs of different seeds that share all other settings, with intervals (`group_rows` of `figures`).
    copies : list of int
        Runs that are bit for bit another of their group, and counted once.
    repeats : list of int
        Runs with the settings and the seed of another, though not bit for bit the same: no further observation over
        seeds, so that each stands alone.
    reached : list of dict
        ``loss``, and of each run what it took (`REACHED`, None if it did not get there).
    axis : str
    curves : xarray.Dataset
        Losses on that axis.
    """

    labels: list[str]
    runs: list[dict[str, Any]]
    settings: dict[str, list[Any]]
    unknown: list[int]
    divergences: list[Divergence | None]
    incomparable: list[str]
    figures: list[Figures]
    differences: dict[str, list[float | None]]
    groups: list[dict[str, Any]]
    copies: list[int]
    repeats: list[int]
    reached: list[dict[str, Any]]
    axis: str
    curves: xr.Dataset

    @property
    def first_divergence(self) -> Divergence | None:
        """The earliest divergence of any run from the first one, by its event there; None if there is none."""
        return self.divergences[self._earliest()] if any(self.divergences) else None

    @property
    def why_none(self) -> str:
        """Why there is no first divergence although runs may differ; empty if there is one, or if nothing differs."""
        return "" if self.first_divergence is not None else next(filter(None, self.incomparable), "")

    def _earliest(self) -> int:
        def place(number: int) -> float:
            found = self.divergences[number]
            return float("inf") if found is None else float("1e18" if found.event is None else found.event)

        return min(range(len(self.divergences)), key=place)

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain data."""
        found = self.first_divergence
        first = None if found is None else {"runs": [0, self._earliest()], **found.to_json()}
        return {
            "runs": self.runs,
            "settings": self.settings,
            "settings_unknown": self.unknown,
            "first_divergence": first,
            "first_divergence_reason": self.why_none or None,
            "divergences": [None if d is None else d.to_json() for d in self.divergences],
            "divergence_reasons": [reason or None for reason in self.incomparable],
            "figures": self.figures,
            "differences": self.differences,
            "groups": self.groups,
            "copies": self.copies,
            "repeats": self.repeats,
            "reached": self.reached,
            "axis": self.axis,
            "curves": {
                self.axis: self.curves[self.axis].values.tolist(),
                **{name: self.curves[name].values.tolist() for name in ("loss", "difference")},
            },
        }

    def __repr__(self) -> str:
        found = self.first_divergence
        where = found.text() if found is not None else self.why_none or "no divergence"
        return f"<Comparison of {', '.join(self.labels)}: {len(self.settings)} settings differ; {where}>"

    def _repr_html_(self) -> str:
        card: str = import_module("workbench.views.comparison_card").comparison_card(self)
        return card


def compare(
    *runs: RunLike | Sequence[RunLike] | Any, axis: str = "tokens_processed", reach: Sequence[float] = ()
) -> Comparison:
    """Compare two to six runs.

    Parameters
    ----------
    *runs : path, xarray.DataTree, or a counterfactual
        Run folders or open tapes; the first is what the others are compared with.  Of an answer of `workbench.what_if`
        every child is a run.
    axis : str
        Common axis of the curves: ``tokens_processed``, ``tokens_merged``, ``time_s`` (wall), ``merges``, ``rounds``.
    reach : sequence of float
        Losses [nat] of which to tell what they took.

    Returns
    -------
    Comparison

    Raises
    ------
    ConfigError
        Fewer than two runs or more than six, or an unknown axis.
    TapeError
        There is no tape.

    Examples
    --------
    >>> wb.compare("runs/first", "runs/second", axis="merges").first_divergence   # doctest: +SKIP
    """
    check_axis(axis)
    given = [each for run in runs for each in _each(run)]
    if not RUNS_MIN <= len(given) <= RUNS_MAX:
        raise ConfigError(f"{len(given)} runs to compare; allowed: {RUNS_MIN} to {RUNS_MAX}")
    tapes = [opened(run)[0] for run in given]
    labels = _labels(given, tapes)
    settings, figures = [settings_of(tape) for tape in tapes], [figures_of(tape) for tape in tapes]
    groups = groups_of(settings)
    own = [distinct(tapes, group) for group in groups]
    seeds = [(run.get("seed"), run.get("what-if seed")) if run is not None else ("unknown",) for run in settings]
    split = [over_seeds(group, seeds) for group in own]
    counted = sorted(part for parts in split for part in parts)
    whys = ["", *(incomparable(tapes[0], tape) for tape in tapes[1:])]
    return Comparison(
        labels=labels,
        runs=[_facts(tape, label, tapes, labels) for tape, label in zip(tapes, labels, strict=True)],
        settings=differing(settings),
        unknown=[number for number, run in enumerate(settings) if run is None],
        divergences=[
            first_divergence(tapes[0], tape) if number and not whys[number] else None
            for number, tape in enumerate(tapes)
        ],
        incomparable=whys,
        figures=figures,
        differences=differences(figures),
        groups=group_rows(figures, counted, seeds),
        copies=sorted({i for group in groups for i in group} - {i for group in own for i in group}),
        repeats=sorted(i for parts in split for part in parts[1:] for i in part),
        reached=[_reached(tapes, loss) for loss in reach],
        axis=axis,
        curves=curves(tapes, labels, axis),
    )


def _each(run: Any) -> list[Any]:
    """Runs that an argument stands for: the children of a counterfactual, the members of a list."""
    if isinstance(run, xr.DataTree | str):
        return [run]
    children = getattr(run, "runs", run)
    return list(children) if isinstance(children, list | tuple) else [run]


def _labels(given: Sequence[Any], tapes: Sequence[xr.DataTree]) -> list[str]:
    names = [
        fspath(run) if isinstance(run, str | PathLike) else str(tape.attrs.get("run_id", "")) or str(tape.name)
        for run, tape in zip(given, tapes, strict=True)
    ]
    return [name if names.count(name) == 1 else f"{name} ({number + 1})" for number, name in enumerate(names)]


def _facts(tape: xr.DataTree, label: str, tapes: Sequence[xr.DataTree], labels: Sequence[str]) -> dict[str, Any]:
    lineage = tape.attrs.get("parent")
    lineage = lineage if isinstance(lineage, dict) else {}
    known = {str(other.attrs.get("run_id", "")): name for other, name in zip(tapes, labels, strict=True)}
    parent = str(lineage.get("run_id", ""))
    return {
        "label": label,
        "run_id": str(tape.attrs.get("run_id", "")),
        "parent": known.get(parent, parent) or None,
        "branch_event": lineage.get("event"),
        "class": lineage.get("class"),
        "closed": bool(tape.attrs.get("closed", False)),
    }


def _reached(tapes: Sequence[xr.DataTree], loss: float) -> dict[str, Any]:
    def told(value: float) -> float | None:
        return None if math.isnan(value) else value

    return {"loss": loss, **{of: [told(tokens_to(tape, loss, of)) for tape in tapes] for of in REACHED}}
