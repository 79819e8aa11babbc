"""Norms and cosines of outer gradients, as labelled Datasets."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from workbench.analysis.arrays import geometry as arrays
from workbench.analysis.arrays.tables import Array, since_began
from workbench.analysis.from_tape import tables_of
from workbench.analysis.labels import Source, attrs

RECORDED = "recorded on the tape"
RECOMPUTED = "recomputed by exact replay"


def geometry(source: Source) -> xr.Dataset:
    """Norms of contributions and merged updates, and cosines, as the tape has them.

    The tape holds the cosine of each contribution to the weighted sum of the others in its merge; the cosine of every
    pair needs the weights: ``wb.geometry(run)`` recomputes it by exact replay.

    Returns
    -------
    xarray.Dataset
        ``norm``, ``cosine``, ``weight`` (merge, learner); ``merged_norm``, ``norm_ratio``, ``mean_cosine`` (merge);
        by number of contributors M (``contributors``) the means ``mean_cosine_of`` and ``norm_ratio_of``, with the
        merges behind each (``…_merges``).
        Attribute ``source`` says that all is recorded.
    """
    tables = tables_of(source)
    found = arrays.geometry(tables)
    both = ("merge", "learner")
    data: dict[str, Any] = {
        "norm": (both, found["norm"], attrs(("1", "norm of the contribution's outer gradient v"))),
        "cosine": (both, found["cosine"], attrs(("1", "cosine of v to the weighted sum of the others"))),
        "weight": (both, found["weight"], attrs(("1", "share of the contribution in the weights"))),
        "merged_norm": ("merge", found["merged_norm"], attrs(("1", "norm of the merged outer gradient"))),
        "norm_ratio": ("merge", found["norm_ratio"], attrs(("1", "merged norm over the weighted mean norm"))),
        "mean_cosine": ("merge", found["mean_cosine"], attrs(("1", "mean cosine to the others"))),
    }
    result = xr.Dataset(data, coords=merge_coords(source, found), attrs={"source": RECORDED})
    return against_m(result, ("mean_cosine", "norm_ratio"))


def merge_coords(source: Source, found: dict[str, Array]) -> dict[str, Any]:
    """Coordinates of the merges and learners."""
    tables = tables_of(source)
    time_s = since_began(tables, tables["events"]["time_ns"][found["event"]])
    return {
        "learner": np.arange(found["norm"].shape[1]),
        **{name: ("merge", found[name]) for name in ("round", "fragment", "version", "event")},
        "m": ("merge", found["contributors"], attrs(("1", "contributions in the merge"))),
        "time_s": ("merge", time_s, attrs(("s", "from the start of rounds"))),
    }


def against_m(data: xr.Dataset, names: tuple[str, ...]) -> xr.Dataset:
    """Add the means of variables (merge,) over the merges with as many contributors."""
    several = np.unique(data["m"].values[data["m"].values > 0])
    for name in names:
        numbers, merges, means = arrays.by_contributors(data["m"].values, data[name].values)
        column, count = np.full(len(several), np.nan), np.zeros(len(several), np.int64)
        at = np.searchsorted(several, numbers)
        column[at], count[at] = means, merges
        long_name = f"{data[name].attrs['long_name']}, mean over merges of M contributions"
        data[f"{name}_of"] = ("contributors", column, attrs(("1", long_name)))
        data[f"{name}_merges"] = ("contributors", count, attrs(("1", f"merges of M contributions with a {name}")))
    return data.assign_coords(contributors=several)
