"""Median, 95th percentile and maximum of a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.analysis.arrays.tables import Array

Spread = dict[str, Any]
"""``count``, ``median``, ``p95``, ``max``; None instead of numbers where there is no value."""


def spread(values: Array) -> Spread:
    """Describe a column; NaN entries have no value and do not count.

    The 95th percentile is the smallest value that at least 95 % do not exceed, so it is one that occurred.

    Examples
    --------
    >>> spread(np.array([1.0, 2.0, np.nan, 3.0]))
    {'count': 3, 'median': 2.0, 'p95': 3.0, 'max': 3.0}
    """
    known = np.asarray(values, float)
    known = known[~np.isnan(known)]
    if not len(known):
        return {"count": 0, "median": None, "p95": None, "max": None}
    return {
        "count": len(known),
        "median": float(np.median(known)),
        "p95": float(np.quantile(known, 0.95, method="inverted_cdf")),
        "max": float(known.max()),
    }
