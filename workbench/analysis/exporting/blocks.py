"""Tables of a tape read block by block: an export holds no whole table in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

ROWS = 1 << 14
"""Rows of a block."""


def blocks(table: xr.Dataset, dim: str, names: Sequence[str], rows: int = ROWS) -> Iterator[list[np.ndarray[Any, Any]]]:
    """Columns of a table, block by block of their rows."""
    for start in range(0, table.sizes.get(dim, 0), rows):
        part = table.isel({dim: slice(start, start + rows)})
        yield [np.asarray(part[name].values) for name in names]


def rows_of(table: xr.Dataset, dim: str, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Rows of a table as plain values, in order."""
    for columns in blocks(table, dim, names):
        yield from zip(*(column.tolist() for column in columns), strict=True)
