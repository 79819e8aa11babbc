"""Sets of times as sorted, disjoint half-open spans: arrays (span, 2) of int64 ns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from workbench.analysis.arrays.tables import Array

EMPTY: Array = np.empty((0, 2), np.int64)


def union(spans: Array | Sequence[tuple[int, int]]) -> Array:
    """Merge spans that overlap or touch; empty ones are dropped."""
    given = np.asarray(spans, np.int64).reshape(-1, 2)
    given = given[given[:, 1] > given[:, 0]]
    if not len(given):
        return EMPTY
    given = given[np.argsort(given[:, 0], kind="stable")]
    reach = np.maximum.accumulate(given[:, 1])
    first = np.r_[True, given[1:, 0] > reach[:-1]]
    last = np.r_[np.flatnonzero(first)[1:] - 1, len(given) - 1]
    return np.stack([given[first, 0], reach[last]], 1)


def inside(spans: Array, times: Array | int) -> Array:
    """Whether each time lies in a span."""
    at = np.searchsorted(spans[:, 0], times, "right") - 1
    return (at >= 0) & (np.asarray(times) < np.r_[spans[:, 1], 0][at])


def contains(spans: Array, start: Array, end: Array) -> Array:
    """Whether one span holds all of [start, end]."""
    at = np.searchsorted(spans[:, 0], start, "right") - 1
    return (at >= 0) & (np.asarray(end) <= np.r_[spans[:, 1], 0][at])


def touches(spans: Array, start: Array, end: Array) -> Array:
    """Whether any span, ends included, meets [start, end]."""
    at = np.searchsorted(spans[:, 0], end, "right") - 1
    return (at >= 0) & (np.r_[spans[:, 1], 0][at] >= np.asarray(start))


def covered(spans: Array, start: Array | int, end: Array | int) -> Array:
    """Time that the spans cover of each [start, end)."""
    return _covered_until(spans, np.maximum(start, end)) - _covered_until(spans, start)


def _covered_until(spans: Array, times: Array | int) -> Array:
    before = np.r_[0, np.cumsum(spans[:, 1] - spans[:, 0])]
    at = np.searchsorted(spans[:, 0], times, "right")
    over = np.maximum(np.r_[0, spans[:, 1]][at] - np.asarray(times), 0)
    return before[at] - np.where(at > 0, over, 0)


def length(spans: Array) -> int:
    """Time covered [ns]."""
    return int((spans[:, 1] - spans[:, 0]).sum())


def intersect(a: Array, b: Array) -> Array:
    """Times in both."""
    return _combine(a, b, np.logical_and)


def subtract(a: Array, b: Array) -> Array:
    """Times in ``a`` and not in ``b``."""
    return _combine(a, b, lambda in_a, in_b: in_a & ~in_b)


def clip(spans: Array, start: int, end: int) -> Array:
    """Times within [start, end)."""
    return union(np.clip(spans, start, end))


def _combine(a: Array, b: Array, keep: Callable[[Array, Array], Array]) -> Array:
    edges = np.unique(np.concatenate([a.ravel(), b.ravel()]))
    if len(edges) < 2:
        return EMPTY
    starts = edges[:-1]
    kept = keep(inside(a, starts), inside(b, starts))
    return union(np.stack([starts[kept], edges[1:][kept]], 1))


def at_least(sets: Sequence[Array], count: int) -> Array:
    """Times that at least ``count`` of the sets hold."""
    edges = np.unique(np.concatenate([EMPTY.ravel(), *(spans.ravel() for spans in sets)]))
    if len(edges) < 2:
        return EMPTY
    starts = edges[:-1]
    holding = sum((inside(spans, starts).astype(np.int64) for spans in sets), np.zeros(len(starts), np.int64))
    kept = holding >= count
    return union(np.stack([starts[kept], edges[1:][kept]], 1))
