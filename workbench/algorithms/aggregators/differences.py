"""Kernels over the differences v_m = anchor_m - value_m of a tensor, shared by the merge rules.

Blocks of 512 elements, so that a second look at a block finds it in the cache.  Differences and the weighted sum are
float32, summed by learner in ascending order.  Sums over elements: eight float32 terms as a tree, then 64 float64
lanes over the blocks, then the lanes in order.  Float32 squares leave their range where a difference is below 1e-19
or above 1e19; tensors that small or large, and contributions that differ so much in length that a cosine would be
lost in cancellation, are summed again in float64 throughout (`geometry`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from workbench.algorithms.compiled import kernel, vector

BLOCK = 512
LANES = 64
_SMALLEST_SQUARE = 1e-24
_SMALLEST_REST = 1e-4

f4 = np.float32
f8 = np.float64


@kernel
def _add_block(anchors, values, coefficients, start, count, total):  # type: ignore[no-untyped-def]
    """``total[:count]`` = sum over learners of coefficient x difference, in order."""
    learners = len(values)
    for j in range(count):
        total[j] = f4(0)
    m = 0
    while m + 4 <= learners:  # four at once: the running sum stays in a register
        a0 = vector(anchors[m], start, count)
        a1 = vector(anchors[m + 1], start, count)
        a2 = vector(anchors[m + 2], start, count)
        a3 = vector(anchors[m + 3], start, count)
        x0 = vector(values[m], start, count)
        x1 = vector(values[m + 1], start, count)
        x2 = vector(values[m + 2], start, count)
        x3 = vector(values[m + 3], start, count)
        c0, c1, c2, c3 = coefficients[m], coefficients[m + 1], coefficients[m + 2], coefficients[m + 3]
        for j in range(count):
            two = (total[j] + c0 * (a0[j] - x0[j])) + c1 * (a1[j] - x1[j])
            total[j] = (two + c2 * (a2[j] - x2[j])) + c3 * (a3[j] - x3[j])
        m += 4
    while m < learners:
        a = vector(anchors[m], start, count)
        x = vector(values[m], start, count)
        c = coefficients[m]
        for j in range(count):
            total[j] += c * (a[j] - x[j])
        m += 1


@kernel
def _block_sums(a, x, s, sums):  # type: ignore[no-untyped-def]
    """Add the squares of v = a - x to lanes 0 .. 63 of ``sums`` and the products v s to lanes 64 .. 127."""
    for i in range(LANES):
        v0, v1, v2, v3 = a[i] - x[i], a[i + 64] - x[i + 64], a[i + 128] - x[i + 128], a[i + 192] - x[i + 192]
        v4, v5 = a[i + 256] - x[i + 256], a[i + 320] - x[i + 320]
        v6, v7 = a[i + 384] - x[i + 384], a[i + 448] - x[i + 448]
        square = ((v0 * v0 + v1 * v1) + (v2 * v2 + v3 * v3)) + ((v4 * v4 + v5 * v5) + (v6 * v6 + v7 * v7))
        low = (v0 * s[i] + v1 * s[i + 64]) + (v2 * s[i + 128] + v3 * s[i + 192])
        high = (v4 * s[i + 256] + v5 * s[i + 320]) + (v6 * s[i + 384] + v7 * s[i + 448])
        sums[i] += f8(square)
        sums[i + 64] += f8(low + high)


@kernel
def _block_square(s, sums):  # type: ignore[no-untyped-def]
    """Add the squares of ``s`` to the lanes of ``sums``."""
    for i in range(LANES):
        s0, s1, s2, s3 = s[i], s[i + 64], s[i + 128], s[i + 192]
        s4, s5, s6, s7 = s[i + 256], s[i + 320], s[i + 384], s[i + 448]
        sums[i] += f8(((s0 * s0 + s1 * s1) + (s2 * s2 + s3 * s3)) + ((s4 * s4 + s5 * s5) + (s6 * s6 + s7 * s7)))


@kernel
def _lanes_total(lanes):  # type: ignore[no-untyped-def]
    total = 0.0
    for lane in lanes:
        total += lane
    return total


@kernel
def weighted_sum(anchors, values, coefficients, low, high, out):  # type: ignore[no-untyped-def]
    """``out`` = sum over m of coefficient_m v_m over [low, high); returns the sum of its squares."""
    total = np.zeros(BLOCK, f4)
    squares = np.zeros(LANES)
    for start in range(low, high, BLOCK):
        count = min(BLOCK, high - start)
        _add_block(anchors, values, coefficients, start, count, total)
        part = out[start - low : start - low + count]
        for j in range(count):
            part[j] = total[j]
        for j in range(count, BLOCK):
            total[j] = f4(0)
        _block_square(total, squares)
    return _lanes_total(squares)


@kernel
def weighted_sum_geometry(anchors, values, coefficients, low, high, out, squares, dots):  # type: ignore[no-untyped-def]
    """As `weighted_sum`; also fills ``squares`` with ||v_m||^2 and ``dots`` with <v_m, out>."""
    learners = len(values)
    total = np.zeros(BLOCK, f4)
    padded_a = np.zeros(BLOCK, f4)
    padded_x = np.zeros(BLOCK, f4)
    sums = np.zeros((learners, 2 * LANES))
    own = np.zeros(LANES)
    for start in range(low, high, BLOCK):
        count = min(BLOCK, high - start)
        _add_block(anchors, values, coefficients, start, count, total)
        part = out[start - low : start - low + count]
        for j in range(count):
            part[j] = total[j]
        for j in range(count, BLOCK):
            total[j] = f4(0)
        _block_square(total, own)
        for m in range(learners):
            if count == BLOCK:
                _block_sums(vector(anchors[m], start, BLOCK), vector(values[m], start, BLOCK), total, sums[m])
            else:
                padded_a[:count] = vector(anchors[m], start, count)
                padded_x[:count] = vector(values[m], start, count)
                _block_sums(padded_a, padded_x, total, sums[m])
    for m in range(learners):
        squares[m] = _lanes_total(sums[m, :LANES])
        dots[m] = _lanes_total(sums[m, LANES:])
    return _lanes_total(own)


@kernel
def _geometry_wide(anchors, values, shares, low, high, squares, dots):  # type: ignore[no-untyped-def]
    """The sums of `weighted_sum_geometry` in float64 throughout."""
    learners = len(values)
    total = np.zeros(BLOCK)
    own = np.zeros(BLOCK)
    lanes = np.zeros((2, learners, BLOCK))
    for start in range(low, high, BLOCK):
        count = min(BLOCK, high - start)
        for j in range(count):
            total[j] = 0.0
        for m in range(learners):
            a = vector(anchors[m], start, count)
            x = vector(values[m], start, count)
            for j in range(count):
                total[j] += shares[m] * (f8(a[j]) - f8(x[j]))
        for m in range(learners):
            a = vector(anchors[m], start, count)
            x = vector(values[m], start, count)
            for j in range(count):
                v = f8(a[j]) - f8(x[j])
                lanes[0, m, j] += v * v
                lanes[1, m, j] += v * total[j]
        for j in range(count):
            own[j] += total[j] * total[j]
    for m in range(learners):
        squares[m] = _lanes_total(lanes[0, m])
        dots[m] = _lanes_total(lanes[1, m])
    return _lanes_total(own)


@kernel
def difference_square(anchor, value, size):  # type: ignore[no-untyped-def]
    """||anchor - value||^2 of two vectors given by address, in float64 throughout."""
    lanes = np.zeros(BLOCK)
    for start in range(0, size, BLOCK):
        count = min(BLOCK, size - start)
        a = vector(anchor, start, count)
        x = vector(value, start, count)
        for j in range(count):
            v = f8(a[j]) - f8(x[j])
            lanes[j] += v * v
    return _lanes_total(lanes)


@kernel
def scale(array, factor):  # type: ignore[no-untyped-def]
    """Multiply a float32 vector in place."""
    for j in range(len(array)):
        array[j] = array[j] * factor


def shares_of(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights over their sum, which is rounded once (float64)."""
    return weights / math.fsum(weights.tolist())


def geometry(
    anchors: NDArray[np.int64],
    values: NDArray[np.int64],
    weights: NDArray[np.float64],
    low: int,
    high: int,
    out: NDArray[np.float32],
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Direct average of a tensor, written to ``out``, and the sums that norms and cosines need.

    Returns
    -------
    squares, dots : float64 arrays, shape (learner,)
        ||v_m||^2 and <v_m, s>, s the direct average.
    average : float
        ||s||^2.
    """
    shares = shares_of(weights)
    squares, dots = np.empty(len(weights)), np.empty(len(weights))
    average = weighted_sum_geometry(anchors, values, shares.astype(f4), low, high, out, squares, dots)
    if not _sound(squares, dots, average, shares, high - low):
        average = _geometry_wide(anchors, values, shares, low, high, squares, dots)
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
