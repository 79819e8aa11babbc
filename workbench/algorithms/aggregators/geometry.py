"""Direct average of a tensor with the sums that norms and cosines need."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from workbench.algorithms.aggregators.differences import BLOCK, geometry_wide, weighted_sum_geometry

_SMALLEST_SQUARE = 1e-24
_SMALLEST_REST = 1e-4


def shares_of(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights over their sum, which is rounded once (float64)."""
    return weights / math.fsum(weights.tolist())


def geometry(
    anchors: NDArray[np.int64],
    values: NDArray[np.int64],
    weights: NDArray[np.float64],
    low: int,
    high: int,
    out: NDArray[np.float32] | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Direct average of a tensor, written to ``out`` if there is one, and the sums that norms and cosines need.

    Returns
    -------
    squares, dots : float64 arrays, shape (learner,)
        ||v_m||^2 and <v_m, s>, s the direct average.
    average : float
        ||s||^2.
    """
    shares = shares_of(weights)
    squares, dots = np.empty(len(weights)), np.empty(len(weights))
    target = np.empty(min(BLOCK, high - low), np.float32) if out is None else out
    average = weighted_sum_geometry(anchors, values, shares.astype(np.float32), low, high, target, squares, dots)
    if not _sound(squares, dots, average, shares, high - low):
        average = geometry_wide(anchors, values, shares, low, high, squares, dots)
    return squares, dots, average


def _sound(
    squares: NDArray[np.float64], dots: NDArray[np.float64], average: float, shares: NDArray[np.float64], size: int
) -> bool:
    """Whether the float32 sums are in range, and what the others of each learner add up to is not lost in them."""
    if not (np.isfinite(squares).all() and squares.min() >= size * _SMALLEST_SQUARE):
        return False
    own = shares * shares * squares
    rest = average - 2 * shares * dots + own
    return len(shares) == 1 or bool((rest >= _SMALLEST_REST * np.maximum(own, average)).all())
