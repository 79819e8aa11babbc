"""Fewer points that show the same: what a screen has no room for is not sent to it, and no extreme is lost."""

from __future__ import annotations

import numpy as np

from workbench.analysis.arrays.tables import Array

POINTS_MAX = 2000
"""Points of one line, two for each pixel of a wide screen."""


def min_max(y: Array, most: int = POINTS_MAX) -> Array:
    """Indices of at most ``most`` points: of each stretch its smallest and its largest value, first and last of all.

    NaN is kept where a stretch holds nothing else.

    Examples
    --------
    >>> spike = np.r_[np.zeros(500), 9.0, np.zeros(500)]
    >>> kept = min_max(spike, 10)
    >>> len(kept) <= 10, float(spike[kept].max())
    (True, 9.0)
    """
    count = len(y)
    if count <= most:
        return np.arange(count)
    edges = np.linspace(0, count, max(2, (most - 2) // 2) + 1).astype(np.int64)
    values = np.asarray(y, float)
    low, high = np.where(np.isnan(values), np.inf, values), np.where(np.isnan(values), -np.inf, values)
    stretch = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    lowest = np.lexsort((low, stretch))[edges[:-1]]
    highest = np.lexsort((-high, stretch))[edges[:-1]]
    return np.unique(np.r_[0, lowest, highest, count - 1])


def evenly(count: int, most: int = POINTS_MAX) -> Array:
    """Indices of at most ``most`` of so many points, first and last among them: for what only rises."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64)) if count else np.arange(0)


def stretches(values: Array) -> tuple[Array, Array, Array]:
    """Runs of equal values.

    Returns
    -------
    start, stop : ndarray (run,)
    value : ndarray (run,)

    Examples
    --------
    >>> [part.tolist() for part in stretches(np.array([1, 1, 0, 0, 0]))]
    [[0, 2], [2, 5], [1, 0]]
    """
    if not len(values):
        return np.arange(0), np.arange(0), values
    start = np.r_[0, np.flatnonzero(values[1:] != values[:-1]) + 1]
    return start, np.r_[start[1:], len(values)], values[start]


def covered(low: Array, high: Array, edges: Array) -> Array:
    """How much of each bin some boxes cover, (bin,) from 0 to 1; they stand in order and do not overlap."""
    if not len(low):
        return np.zeros(len(edges) - 1)
    high = np.maximum(high, low)
    knots = np.maximum.accumulate(np.stack([low, high], 1).ravel())
    so_far = np.repeat(np.cumsum(high - low), 2)
    so_far[0::2] -= high - low
    return np.asarray(np.clip(np.diff(np.interp(edges, knots, so_far)) / np.diff(edges), 0.0, 1.0))
