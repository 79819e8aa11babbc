"""Finding rows by several integer keys at once, by sorting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.analysis.arrays.tables import Array


def ranks(keys: Sequence[Array], wanted: Sequence[Array]) -> tuple[Array, Array]:
    """Number equal key tuples alike: ranks of the rows of ``keys`` and of ``wanted``."""
    count = len(keys[0])
    rank = np.zeros(count + len(wanted[0]), np.int64)
    for have, want in zip(keys, wanted, strict=True):
        column = np.concatenate([np.asarray(have, np.int64), np.asarray(want, np.int64)])
        low, high = int(column.min(initial=0)), int(column.max(initial=0))
        if (int(rank.max(initial=0)) + 1) * (high - low + 1) >= 2**62:
            rank = np.unique(rank, return_inverse=True)[1]
        rank = rank * (high - low + 1) + (column - low)
    return rank[:count], rank[count:]


def last_before(keys: Sequence[Array], order: Array, wanted: Sequence[Array], before: Array) -> Array:
    """Row with the same keys and the highest ``order`` below ``before``, -1 where there is none.

    Parameters
    ----------
    keys : sequence of ndarray (row,)
        Integer columns that must be equal.
    order : ndarray (row,)
        Not negative, such as event indices.
    wanted : sequence of ndarray (query,)
        As ``keys``.
    before : ndarray (query,)
    """
    have, want = ranks(keys, wanted)
    width = int(max(order.max(initial=0), np.max(before, initial=0))) + 1
    if (int(max(have.max(initial=0), want.max(initial=0))) + 1) * width >= 2**62:
        both = np.unique(np.concatenate([have, want]), return_inverse=True)[1]
        have, want = both[: len(have)], both[len(have) :]
    moments = have * width + order
    sort = np.argsort(moments, kind="stable")
    at = np.searchsorted(moments[sort], want * width + before) - 1
    row = np.r_[sort, -1][at]
    return np.where((at >= 0) & (np.r_[have, -1][row] == want), row, -1)
