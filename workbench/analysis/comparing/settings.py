"""Which settings of several runs differ, and which runs differ in their seed only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from workbench.analysis.from_tape import config_of
from workbench.config.load import flatten
from workbench.protocol.records import Kind

SEEDS = ("seed", "what-if seed")
"""Keys that runs of one group may differ in."""
WITHOUT = "what-if without"
"""Key of the faults that a counterfactual left out."""
NAMES_ONLY = ("preset",)
"""Keys that change nothing by themselves."""


def settings_of(tape: xr.DataTree) -> dict[str, Any] | None:
    """Everything that was asked of a run, by key; None for a tape that does not say, as an imported one.

    Beside the configuration: ``clock``, the faults planned (``faults.chaos``, ``faults.scenario``), and of a
    counterfactual what was left out and its own seed.  A key that was changed while the run went on, or in a
    counterfactual from a round on, has what was in force as text, in order: ``2, 3 from round 99``.
    """
    if not tape.attrs.get("config") or tape.attrs.get("imported"):
        return None
    faults = tape.attrs.get("faults") or {}
    parent = tape.attrs.get("parent")
    lineage = parent if isinstance(parent, dict) else {}
    return {
        **_in_force(flatten(config_of(tape)), tape),
        "clock": str(tape.attrs.get("clock", "")),
        **{f"faults.{name}": str(faults.get(name, "")) for name in ("chaos", "scenario")},
        **({WITHOUT: lineage["without"]} if lineage.get("without") else {}),
        **({SEEDS[1]: lineage["seed"]} if "seed" in lineage else {}),
    }


def _in_force(asked: dict[str, Any], tape: xr.DataTree) -> dict[str, Any]:
    """The configuration, with what was changed while the run went on, and from which round on each acted."""
    rows, events = tape["settings"].dataset, tape["events"].dataset
    opened = np.flatnonzero(events["kind"].values == int(Kind.ROUND_OPENED))
    rounds, found = events["round"].values, dict(asked)
    columns = (rows[name].values.tolist() for name in ("key", "value", "event"))
    for key, text, event in zip(*columns, strict=True):
        later = opened[np.searchsorted(opened, event) :]
        since = f"from round {int(rounds[later[0]])}" if len(later) else "at its end"
        found[key] = f"{_plain(found.get(key))}, {_plain(json.loads(text))} {since}"
    return found


def _plain(value: Any) -> str:
    """A value as it stands in a configuration."""
    return str(value).lower() if isinstance(value, bool) else "none" if value is None else str(value)


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


def over_seeds(group: Sequence[int], seeds: Sequence[Any]) -> list[list[int]]:
    """The runs of a group that stand for different seeds; a further one with a seed of theirs stands alone.

    Examples
    --------
    >>> over_seeds([0, 1, 3], {0: 7, 1: 7, 3: 8})
    [[0, 3], [1]]
    """
    first: dict[Any, int] = {}
    for number in group:
        first.setdefault(seeds[number], number)
    kept = list(first.values())
    return [kept, *([number] for number in group if number not in kept)]
