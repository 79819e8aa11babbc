"""The table of merges against the events that it was made of: both are on the tape, readers use either."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from workbench.protocol.records import SYNCER, label_of
from workbench.replay.differences import Difference
from workbench.replay.program import Merged

COLUMNS = ("digest", "outer_digest", "round", "fragment", "version")


def merge_table_differences(tape: xr.DataTree, merges: Sequence[Merged]) -> list[Difference]:
    """For each column of /merges the first row that is not what the row's event says.

    Parameters
    ----------
    tape : xarray.DataTree
    merges : sequence of Merged
        Of the whole tape, in journal order: row by row those of the table.
    """
    table = tape["merges"].dataset
    rows = min(table.sizes.get("merge", 0), len(merges))
    found = []
    for name in COLUMNS if rows else ():
        event = np.array([getattr(merge, name) for merge in merges[:rows]], table[name].dtype)
        there = table[name].values[:rows]
        for row in np.flatnonzero(there != event)[:1].tolist():
            merge, form = merges[row], "{:016x}" if name.endswith("digest") else "{}"
            place = (merge.event, "merged", label_of(SYNCER), merge.round, merge.fragment, "tape")
            found.append(
                Difference(*place, f"{name} in /merges", form.format(there[row]), form.format(event[row]), row)
            )
    return found
