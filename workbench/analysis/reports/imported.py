"""A tape that was made from the logs of another trainer: what it holds, and what cannot be told from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from workbench.analysis.arrays.participation import participation
from workbench.analysis.arrays.presence import presences
from workbench.analysis.arrays.spread import spread
from workbench.analysis.arrays.staleness import staleness
from workbench.analysis.arrays.tables import NS
from workbench.analysis.arrays.time_shares import time_shares
from workbench.analysis.from_tape import tables_of
from workbench.config import RunConfig


def report(source: xr.DataTree, config: RunConfig | None = None) -> dict[str, Any]:
    """Report an imported run.

    Parameters
    ----------
    source : xarray.DataTree
        A tape of `workbench.tape.foreign.importing.import_logs`.
    config : RunConfig, optional
        Not needed; taken as all reports take it.

    Returns
    -------
    dict
        ``imported`` (files, map, replicas, numbers of lines, notes), ``clocks``, ``untold``; ``participation``;
        ``staleness``: spreads of ``versions`` and ``steps`` of the contributions to syncs; ``goodput`` (None if it
        cannot be told); ``between_syncs_s`` (spread); ``learners``: rows of ``learner``, ``name``, ``steps``,
        ``tokens``, ``syncs``, ``participation``, ``lives``, ``steps_per_sync`` (median), ``goodput``.
    """
    tables, untold = tables_of(source), source.wb.untold
    found, stale = participation(tables), staleness(tables)
    shares = None if "goodput" in untold else time_shares(tables)
    times = tables["events"]["time_ns"][tables["merges"]["event"]]
    return {
        "imported": dict(source.attrs["imported"]),
        "clocks": source.wb.clocks,
        "untold": untold,
        "syncs": len(times),
        "participation": None if np.isnan(found.share) else found.share,
        "staleness": {name: spread(stale[name]) for name in ("versions", "steps")},
        "goodput": None if shares is None else shares.goodput,
        "between_syncs_s": spread(np.diff(times) * NS),
        "learners": _learners(source, found.per_learner, stale, shares),
    }


def _learners(source: xr.DataTree, share: Any, stale: dict[str, Any], shares: Any) -> list[dict[str, Any]]:
    tables, names = tables_of(source), source.attrs["imported"]["replicas"]
    steps, lives = tables["steps"], presences(tables)
    rows = []
    for learner, name in enumerate(names):
        mine, synced = steps["learner"] == learner, stale["learner"] == learner
        useful = None if shares is None else float(shares.useful_ns[learner] / max(shares.allocated_ns[learner], 1))
        rows.append(
            {
                "learner": learner,
                "name": name,
                "steps": int(mine.sum()),
                "tokens": int(steps["tokens"][mine].sum()),
                "syncs": int(synced.sum()),
                "participation": None if np.isnan(share[learner]) else float(share[learner]),
                "lives": len(lives[learner].lives),
                "steps_per_sync": spread(stale["steps"][synced])["median"],
                "goodput": useful,
            }
        )
    return rows
