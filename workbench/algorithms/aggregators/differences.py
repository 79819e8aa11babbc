"""Kernels over the differences v_m = anchor_m - value_m of a tensor, shared by the merge rules.

The tensor is taken in blocks of 512 elements, and a block in groups of 64 = 4 vectors of 16 lanes, all learners in
step, so that every stream is read from memory once and a second look finds it in the nearest cache.  Differences and
their weighted sum are float32, by learner in ascending order, with fused multiply-add.  A sum over elements takes
lane by lane the 32 terms of a block in float32, then the blocks in float64, then the lanes in order.  Vectors are
written out in LLVM's own code (`_block`): loops that the compiler turns into vectors by itself take about twice as
long, and the lanes would be a matter of its taste.  Every operation is exact IEEE arithmetic in a fixed order, so the
bits are the same on every processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from workbench.algorithms.compiled import kernel, vector
from workbench.algorithms.vector_writer import FLOAT32, INT64, LANES, VECTOR, VECTORS, VectorWriter

BLOCK = 512
AHEAD = 1024
"""Bytes by which memory is asked for before its use; a hint, without influence on results."""
_SMALLEST_SQUARE = 1e-24
_SMALLEST_REST = 1e-4


def _block(geometry: bool, common: bool) -> Any:
    """Code for one block: out = sum of c_m v_m, and sums over its elements.

    The arguments: anchors and values (int64 addresses by learner), coefficients (float32 by learner), start (first
    element of the block), out (float32) and the position in it, sums (float32, rows of LANES, added to): the squares
    of out, and with ``geometry`` v_m^2 and v_m out by learner.  With ``common`` all anchors are the first, which is
    then read once; the results are the same.  ``owner`` is what the addresses point into, so that it lives on.
    """

    @intrinsic  # type: ignore[arg-type]
    def block(
        typing_context: Any,
        anchors: Any,
        values: Any,
        coefficients: Any,
        start: Any,
        out: Any,
        position: Any,
        sums: Any,
        owner: Any,
    ) -> Any:
        signature = types.void(anchors, values, coefficients, types.int64, out, types.int64, sums, owner)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def array(i: int) -> Any:
                return context.make_array(signature.args[i])(context, builder, arguments[i])

            def address(i: int) -> Any:
                return builder.ptrtoint(array(i).data, INT64)

            learners = cgutils.unpack_tuple(builder, array(1).shape, 1)[0]
            out = builder.add(address(4), builder.mul(arguments[5], INT64(4)))
            with cgutils.for_range(builder, INT64(BLOCK // (LANES * VECTORS))) as group:
                _write_group(
                    builder,
                    geometry,
                    common,
                    group.index,
                    address(0),
                    address(1),
                    address(2),
                    learners,
                    arguments[3],
                    out,
                    address(6),
                )
            return context.get_dummy_value()

        return signature, generate

    return block


def _write_group(
    builder: Any,
    geometry: bool,
    common: bool,
    group: Any,
    anchors: Any,
    values: Any,
    coefficients: Any,
    learners: Any,
    start: Any,
    out: Any,
    sums: Any,
) -> None:
    w = VectorWriter(builder)
    first = builder.add(start, builder.mul(group, INT64(LANES * VECTORS)))
    totals = [cgutils.alloca_once(builder, VECTOR) for _ in range(VECTORS)]
    for total in totals:
        builder.store(ir.Constant(VECTOR, None), total)

    def vectors(addresses: Any, m: Any) -> list[Any]:
        address = w.offset(w.load(w.offset(addresses, m, 8), INT64), first, 4)
        return [w.load(w.part(address, k)) for k in range(VECTORS)]

    shared = vectors(anchors, INT64(0)) if common else None

    def differences(m: Any) -> list[Any]:
        pairs = zip(shared or vectors(anchors, m), vectors(values, m), strict=True)
        return [builder.fsub(a, x) for a, x in pairs]

    def accumulate(row: Any, pairs: Any) -> None:
        address = w.offset(sums, row, 4 * LANES)
        lanes = w.load(address)
        for one, other in pairs:
            lanes = w.fma(one, other, lanes)
        w.store(lanes, address)

    with cgutils.for_range(builder, learners) as loop:
        coefficient = w.splat(w.load(w.offset(coefficients, loop.index, 4), FLOAT32))
        w.ask_for(builder.add(w.offset(w.load(w.offset(values, loop.index, 8), INT64), first, 4), INT64(AHEAD)))
        v = differences(loop.index)
        for total, vk in zip(totals, v, strict=True):
            builder.store(w.fma(coefficient, vk, builder.load(total)), total)
        if geometry:
            accumulate(builder.add(loop.index, INT64(1)), zip(v, v, strict=True))
    merged = [builder.load(total) for total in totals]
    target = w.offset(out, builder.mul(group, INT64(LANES * VECTORS)), 4)
    for k, total in enumerate(merged):
        w.store(total, w.part(target, k))
    accumulate(INT64(0), zip(merged, merged, strict=True))
    if geometry:
        with cgutils.for_range(builder, learners) as loop:
            row = builder.add(builder.add(learners, INT64(1)), loop.index)
            accumulate(row, zip(differences(loop.index), merged, strict=True))


_block_sum = _block(geometry=False, common=False)
_block_sum_common = _block(geometry=False, common=True)
_block_geometry = _block(geometry=True, common=False)
_block_geometry_common = _block(geometry=True, common=True)


@kernel
def _pad(addresses, start, count, padded, rows):  # type: ignore[no-untyped-def]
    """Copy the last, short block of each vector to ``padded`` (learner, BLOCK), zeros after it; ``rows``: addresses."""
    for m in range(len(addresses)):
        x = vector(addresses[m], start, count)
        for j in range(BLOCK):
            padded[m, j] = x[j] if j < count else np.float32(0)
        rows[m] = padded.ctypes.data + 4 * BLOCK * m


@kernel
def _total(sums, start, count):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(start, start + count):
        total += sums[i]
    return total


@kernel
def _sum_range(anchors, values, coefficients, low, high, out, geometry):  # type: ignore[no-untyped-def]
    """All blocks of [low, high); returns the float64 sums, rows of LANES end to end.

    With an ``out`` of BLOCK elements for a longer range each block overwrites the one before.
    """
    learners = len(values)
    rows = 1 + 2 * learners if geometry else 1
    sums, wide = np.zeros(rows * LANES, np.float32), np.zeros(rows * LANES)
    padded = np.empty((2, learners, BLOCK), np.float32)
    starts, last = np.empty((2, learners), np.int64), np.empty(BLOCK, np.float32)
    common = True
    for m in range(learners):
        common = common and anchors[m] == anchors[0]
    step = 1 if len(out) >= high - low else 0
    for start in range(low, high, BLOCK):
        a, x, first, target, position = anchors, values, start, out, step * (start - low)
        if high - start < BLOCK:
            _pad(anchors, start, high - start, padded[0], starts[0])
            _pad(values, start, high - start, padded[1], starts[1])
            a, x, first, target, position, common = starts[0], starts[1], 0, last, 0, False
        if geometry and common:
            _block_geometry_common(a, x, coefficients, first, target, position, sums, padded)
        elif geometry:
            _block_geometry(a, x, coefficients, first, target, position, sums, padded)
        elif common:
            _block_sum_common(a, x, coefficients, first, target, position, sums, padded)
        else:
            _block_sum(a, x, coefficients, first, target, position, sums, padded)
        for i in range(rows * LANES):
            wide[i] += np.float64(sums[i])
            sums[i] = np.float32(0)
    if (high - low) % BLOCK:
        whole = step * (high - low - (high - low) % BLOCK)
        for j in range((high - low) % BLOCK):
            out[whole + j] = last[j]
    return wide


@kernel
def _geometry_wide(anchors, values, shares, low, high, squares, dots):  # type: ignore[no-untyped-def]
    """The sums of `_sum_range` in float64 throughout."""
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
                total[j] += shares[m] * (np.float64(a[j]) - np.float64(x[j]))
        for m in range(learners):
            a = vector(anchors[m], start, count)
            x = vector(values[m], start, count)
            for j in range(count):
                v = np.float64(a[j]) - np.float64(x[j])
                lanes[0, m, j] += v * v
                lanes[1, m, j] += v * total[j]
        for j in range(count):
            own[j] += total[j] * total[j]
    for m in range(learners):
        squares[m] = _total(lanes[0, m], 0, BLOCK)
        dots[m] = _total(lanes[1, m], 0, BLOCK)
    return _total(own, 0, BLOCK)


@kernel
def _sound(squares, dots, average, shares, size):  # type: ignore[no-untyped-def]
    """Whether float32 squares kept their range, and what the others of each learner add up to is not lost in them."""
    for m in range(len(shares)):
        if not (squares[m] >= size * _SMALLEST_SQUARE and squares[m] < np.inf):
            return False
        own = shares[m] * shares[m] * squares[m]
        rest = average - 2 * shares[m] * dots[m] + own
        if len(shares) > 1 and not rest >= _SMALLEST_REST * max(own, average):
            return False
    return True


@kernel
def _merge_range(anchors, values, shares, low, high, out, geometry, squares, dots):  # type: ignore[no-untyped-def]
    """The one entry to the kernels above: a weighted sum, with ``geometry`` also squares and dots."""
    learners = len(values)
    coefficients = np.empty(learners, np.float32)
    for m in range(learners):
        coefficients[m] = np.float32(shares[m])
    sums = _sum_range(anchors, values, coefficients, low, high, out, geometry)
    merged = _total(sums, 0, LANES)
    if not geometry:
        return merged
    for m in range(learners):
        squares[m] = _total(sums, LANES * (1 + m), LANES)
        dots[m] = _total(sums, LANES * (1 + learners + m), LANES)
    if _sound(squares, dots, merged, shares, high - low):
        return merged
    return _geometry_wide(anchors, values, shares, low, high, squares, dots)


_NONE = np.empty(0)


def weighted_sum(
    anchors: np.ndarray, values: np.ndarray, coefficients: np.ndarray, low: int, high: int, out: np.ndarray
) -> float:
    """``out`` = sum over m of coefficient_m v_m over [low, high); returns the sum of its squares."""
    assert len(out) >= high - low
    return _merge_range(anchors, values, coefficients, low, high, out, False, _NONE, _NONE)


def average_geometry(
    anchors: np.ndarray, values: np.ndarray, shares: np.ndarray, low: int, high: int, out: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Direct average of [low, high) with shares of sum 1, to ``out`` (or by blocks over it, if that is BLOCK long).

    Float32 squares leave their range where a difference is below 1e-19 or above 1e19; tensors that small or large,
    and contributions that differ so much in length that a cosine would be lost in cancellation, are summed again in
    float64 throughout.

    Returns
    -------
    squares, dots : float64 arrays, shape (learner,)
        ||v_m||^2 and <v_m, average>.
    average : float
        ||average||^2.
    """
    assert len(out) >= min(BLOCK, high - low)
    squares, dots = np.empty(len(shares)), np.empty(len(shares))
    average = _merge_range(anchors, values, shares, low, high, out, True, squares, dots)
    return squares, dots, average
