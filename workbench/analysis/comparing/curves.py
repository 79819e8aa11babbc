"""Validation losses of several runs on one axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from workbench.analysis.arrays.efficiency import efficiency
from workbench.analysis.arrays.tables import Array
from workbench.analysis.efficiencies import NAMES
from workbench.analysis.from_tape import tables_of
from workbench.analysis.labels import attrs


def curves(tapes: Sequence[xr.DataTree], labels: Sequence[str], axis: str) -> xr.Dataset:
    """Losses at common points of an axis: every evaluation of any run, where all runs have evaluations around it.

    Between two evaluations of a run on straight lines.

    Parameters
    ----------
    tapes, labels : sequences, by run
    axis : str
        ``time_s``, ``tokens_processed``, ``tokens_merged``, ``merges`` or ``rounds``.

    Returns
    -------
    xarray.Dataset
        ``loss`` and ``difference`` (to the first run) (run, point) [nat]; coordinates ``run`` and the axis (point).
    """
    found = [efficiency(tables_of(tape)) for tape in tapes]
    points = common_points([columns[axis] for columns in found])
    loss = np.stack([np.interp(points, run[axis], run["loss"]) if len(points) else points for run in found])
    both = ("run", "point")
    return xr.Dataset(
        {
            "loss": (both, loss, attrs(("nat", "validation loss"))),
            "difference": (both, loss - loss[0], attrs(("nat", f"validation loss less that of {labels[0]}"))),
        },
        coords={"run": list(labels), axis: ("point", points, attrs(NAMES[axis]))},
    )


def common_points(axes: Sequence[Array]) -> Array:
    """Points of any run that lie between the first and the last of every run, ascending; empty if none do."""
    if not all(len(points) for points in axes):
        return np.empty(0)
    low, high = max(points.min() for points in axes), min(points.max() for points in axes)
    every = np.unique(np.concatenate([np.asarray(points, float) for points in axes]))
    return every[(every >= low) & (every <= high)]
