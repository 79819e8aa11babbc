"""Where the time of rounds went, as a labelled Dataset."""

from __future__ import annotations

import numpy as np
import xarray as xr

from workbench.analysis.arrays import breakdown as arrays
from workbench.analysis.arrays.grouped import NAMES, grouped_spread
from workbench.analysis.arrays.rounds import OUTCOMES
from workbench.analysis.arrays.tables import since_began
from workbench.analysis.from_tape import tables_of
from workbench.analysis.labels import Source, attrs

_MERGED = OUTCOMES.index("merged")


def breakdown(source: Source) -> xr.Dataset:
    """Split the time of every round: quorum wait, grace, pull, merge, commit, send (PROTOCOL section 2).

    Returns
    -------
    xarray.Dataset
        ``state_s`` (row, state) [s] for every opened round, NaN where a state was not reached; ``open_s`` (row), until
        its first learner was ready; ``total_s`` (row).  Over the merged rounds: ``share`` (state) of their time, and
        ``count``, ``median_s``, ``p95_s``, ``max_s`` (state).
    """
    tables = tables_of(source)
    found = arrays.breakdown(tables)
    rows, states = found["state_s"].shape
    merged = np.where(found["outcome"] == _MERGED, 0, -1)[:, None]
    group = np.where(merged < 0, -1, np.arange(states)[None, :]).ravel()
    told = grouped_spread(found["state_s"].ravel(), group, states)
    spreads = {
        f"{name}_s" if name != "count" else name: ("state", told[name], attrs(_of(name, "time in the state")))
        for name in NAMES
    }
    share = arrays.shares(found["state_s"][found["outcome"] == _MERGED])
    return xr.Dataset(
        {
            "state_s": (("row", "state"), found["state_s"], attrs(("s", "time of the round in the state"))),
            "open_s": ("row", found["open_s"], attrs(("s", "opening until the first learner was ready"))),
            "total_s": ("row", found["total_s"], attrs(("s", "first learner ready until UPDATE was sent"))),
            "share": ("state", share, attrs(("1", "share of the state in the time of merged rounds"))),
            **spreads,
        },
        coords={
            "state": list(arrays.STATES),
            "opened_s": ("row", since_began(tables, found["opened_ns"]), attrs(("s", "opened, from start of rounds"))),
            "outcome": ("row", np.array(OUTCOMES)[found["outcome"]]),
            **{name: ("row", found[name]) for name in ("round", "fragment", "version", "included")},
        },
    ).assign_coords(row=np.arange(rows))


def _of(name: str, what: str) -> tuple[str, str]:
    return ("1", "merged rounds with a value") if name == "count" else ("s", f"{name} of the {what}")
