"""Median, 95th percentile and maximum of many groups at once, by sorting and counting."""

from __future__ import annotations

import numpy as np

from workbench.analysis.arrays.tables import Array

NAMES = ("count", "median", "p95", "max")
"""What is told of a group."""


def grouped_spread(values: Array, group: Array, groups: int) -> dict[str, Array]:
    """Describe the values of each group as `workbench.analysis.arrays.spread.spread` describes a column.

    Parameters
    ----------
    values : ndarray (value,)
        NaN entries have no value and do not count.
    group : ndarray (value,)
        Group of each value, from 0; a negative one belongs to none.
    groups : int
        How many groups there are.

    Returns
    -------
    dict of str to ndarray (group,)
        ``count``, ``median`` (of an even number the mean of the two in the middle), ``p95`` (the smallest value that at
        least 95 % do not exceed) and ``max``; NaN where a group is empty.

    Examples
    --------
    >>> found = grouped_spread(np.array([3.0, 1.0, 9.0, np.nan]), np.array([0, 0, 2, 2]), 3)
    >>> found["count"].tolist(), found["median"].tolist()
    ([2, 0, 1], [2.0, nan, 9.0])
    """
    known = ~np.isnan(values) & (group >= 0)
    values, group = np.asarray(values, float)[known], np.asarray(group, np.int64)[known]
    values = np.r_[values[np.lexsort((values, group))], np.nan]
    count = np.bincount(group, minlength=groups)
    start = np.cumsum(count) - count

    def at(place: Array) -> Array:
        return np.asarray(values[np.where(count > 0, start + place, len(values) - 1)])

    return {
        "count": count,
        "median": (at((count - 1) // 2) + at(count // 2)) / 2,
        "p95": at(-(-count * 95 // 100) - 1),
        "max": at(count - 1),
    }
