"""How goodput and badput went over the time of a run, as a labelled Dataset."""

from __future__ import annotations

import numpy as np
import xarray as xr

from workbench.analysis.arrays.course import edges_ns, shares_course
from workbench.analysis.arrays.tables import since_began
from workbench.analysis.arrays.time_shares import CAUSES
from workbench.analysis.from_tape import tables_of
from workbench.analysis.labels import Source, attrs


def goodput_over_time(source: Source, bins: int = 60) -> xr.Dataset:
    """Goodput and badput by cause in parts of equal length of the run.

    Returns
    -------
    xarray.Dataset
        ``allocated_s`` (bin) [s]; ``goodput`` (bin) and ``badput`` (bin, cause), which add up to 1, NaN where no time
        was allocated; ``start_s`` and ``end_s`` (bin), from the start of rounds.
    """
    tables = tables_of(source)
    useful_s, badput_s = shares_course(tables, bins)
    allocated_s = useful_s + badput_s.sum(1)
    whole = np.where(allocated_s > 0, allocated_s, np.nan)
    edges_s = since_began(tables, edges_ns(tables, bins))
    return xr.Dataset(
        {
            "allocated_s": ("bin", allocated_s, attrs(("s", "allocated time of all learners"))),
            "goodput": ("bin", useful_s / whole, attrs(("1", "useful over allocated time"))),
            "badput": (("bin", "cause"), badput_s / whole[:, None], attrs(("1", "share of allocated time, by cause"))),
        },
        coords={
            "cause": list(CAUSES),
            "start_s": ("bin", edges_s[:-1], attrs(("s", "begin of the part"))),
            "end_s": ("bin", edges_s[1:], attrs(("s", "end of the part"))),
        },
    )
