"""Which settings of several runs differ, and which runs differ in their seed only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import xarray as xr

from workbench.analysis.from_tape import config_of
from workbench.config.load import flatten

SEEDS = ("seed", "what-if seed")
"""Keys that runs of one group may differ in."""
NAMES_ONLY = ("preset",)
"""Keys that change nothing by themselves."""


def settings_of(tape: xr.DataTree) -> dict[str, Any] | None:
    """Everything that was asked of a run, by key; None for a tape that does not say, as an imported one.

    Beside the configuration: ``clock``, the faults planned (``faults.chaos``, ``faults.scenario``), what was changed
    while it ran (``live``), and of a counterfactual its changes and its own seed.
    """
    if not tape.attrs.get("config") or tape.attrs.get("imported"):
        return None
    faults = tape.attrs.get("faults") or {}
    parent = tape.attrs.get("parent")
    lineage = parent if isinstance(parent, dict) else {}
    return {
        **flatten(config_of(tape)),
        "clock": str(tape.attrs.get("clock", "")),
        **{f"faults.{name}": str(faults.get(name, "")) for name in ("chaos", "scenario")},
        "live": _live(tape),
        **{f"what-if {name}": lineage[name] for name in _lineage(lineage) if lineage.get(name)},
        **({"what-if seed": lineage["seed"]} if "seed" in lineage else {}),
    }


def _lineage(lineage: dict[str, Any]) -> tuple[str, ...]:
    """What of a counterfactual's lineage its configuration does not say: that has changes made from the start."""
    return ("without",) if lineage.get("from_round") is None else ("changes", "without", "from_round")


def _live(tape: xr.DataTree) -> list[str]:
    """Changes made while the run went on, in order, with the round from which each acted."""
    rows = tape["settings"].dataset
    columns = (rows[name].values.tolist() for name in ("key", "value", "first_round"))
    return [
        f"{key} = {value}" + (f" from round {at}" if at >= 0 else "") for key, value, at in zip(*columns, strict=True)
    ]


def differing(settings: Sequence[dict[str, Any] | None]) -> dict[str, list[Any]]:
    """Keys whose values are not the same in all runs that tell theirs, with the value of each (None: it has none)."""
    told = [run for run in settings if run is not None]
    keys = dict.fromkeys(key for run in told for key in run)
    rows = {key: [run.get(key) for run in told] for key in keys}
    if len({value for value in rows.get(SEEDS[1], ()) if value is not None}) < 2:
        rows.pop(SEEDS[1], None)  # the one counterfactual, or several with the same draws
    differ = [key for key, values in rows.items() if any(value != values[0] for value in values)]
    return {key: [None if run is None else run.get(key) for run in settings] for key in differ}


def groups_of(settings: Sequence[dict[str, Any] | None]) -> list[list[int]]:
    """Runs by number that share all settings but their seeds, in order of their first; each unknown one alone."""
    found: dict[str, list[int]] = {}
    for number, run in enumerate(settings):
        if run is None:
            found[f"unknown {number}"] = [number]
            continue
        kept = {key: value for key, value in run.items() if key not in (*SEEDS, *NAMES_ONLY)}
        found.setdefault(json.dumps(kept, sort_keys=True, default=str), []).append(number)
    return list(found.values())
