"""Tables in memory and how they become chunks of Zarr v3 arrays.

The recorder writes chunks and array metadata itself (bytes, zstd with its checksum; texts as
vlen-utf8): a commit touches some 50 arrays a second, for which zarr's own array objects cost five times
as much.  What is written is plain Zarr v3, which `zarr` and `xarray` read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numcodecs  # type: ignore[import-untyped]
import numpy as np

from workbench.tape.schema import Group, Variable, attributes

Item = tuple[str, bytes]
"""A key of the store and its bytes."""

_zstd = numcodecs.Zstd(level=1, checksum=True)
_texts = numcodecs.VLenUTF8()
_ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": True}}


class Column:
    """Rows of one variable that may still be written: from ``base`` on.

    Attributes
    ----------
    base : int
        First row kept; a multiple of the chunk's rows.
    dirty : set of int
        Chunk numbers along the rows to write at the next commit.
    """

    def __init__(self, variable: Variable, width: int = 0) -> None:
        self.variable = variable
        self.base = 0
        self.dirty: set[int] = set()
        shape = (64, width) if variable.axis else (64,)
        self._data = np.full(shape, variable.fill, variable.numpy)

    @property
    def end(self) -> int:
        """Rows that there is room for, counted from row 0."""
        return self.base + len(self._data)

    def reserve(self, rows: int) -> None:
        """Make room for rows up to ``rows``; new rows hold the fill value."""
        need = rows - self.base
        if need > len(self._data):
            grown = np.full(
                (max(need, 2 * len(self._data)), *self._data.shape[1:]), self.variable.fill, self._data.dtype
            )
            grown[: len(self._data)] = self._data
            self._data = grown

    def widen(self, width: int) -> None:
        """Lengthen the second axis; what is new holds the fill value."""
        wide = np.full((len(self._data), width), self.variable.fill, self._data.dtype)
        wide[:, : self._data.shape[1]] = self._data
        self._data = wide

    def rows(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """View of the rows from ``start`` to ``stop``."""
        return self._data[start - self.base : stop - self.base]

    def forget(self, before: int) -> None:
        """Keep only the rows from ``before`` on."""
        kept = self._data[before - self.base :].copy()
        self._data = np.full((max(64, len(kept)), *kept.shape[1:]), self.variable.fill, kept.dtype)
        self._data[: len(kept)] = kept
        self.base = before


class Table:
    """One group's rows on their way to the store.

    A table that is not mutable keeps only the rows of its last, unfilled chunk.

    Parameters
    ----------
    group : Group
        Its schema.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.rows = 0
        self.width = 0
        self.chunk = group.chunk
        self.chunk_width = 8
        self.columns = {v.name: Column(v) for v in group.variables}
        self._capacity = 0
        self._appended: set[int] = set()
        self._metadata_dirty = True
        self._created = False

    def append(self, columns: Mapping[str, Any], count: int) -> int:
        """Append ``count`` rows; a variable not named gets its fill value.  Return the first new row."""
        first = self._grow(count)
        for name, values in columns.items():
            column = self.columns[name]
            target = column.rows(first, self.rows)
            if column.variable.axis:
                target = target[:, : values.shape[1]]
            target[...] = values
        return first

    def _grow(self, count: int) -> int:
        """Make ``count`` rows of fill values; return the first."""
        first, self.rows = self.rows, self.rows + count
        if not count:
            return first
        if self.rows > self._capacity:
            for column in self.columns.values():
                column.reserve(self.rows)
            self._capacity = min(column.end for column in self.columns.values())
        self._appended.update(range(first // self.chunk, (self.rows - 1) // self.chunk + 1))
        self._metadata_dirty = True
        return first

    def append_row(self, **values: Any) -> int:
        """Append one row; a variable not named gets its fill value.  Return its number."""
        row = self._grow(1)
        for name, value in values.items():
            column = self.columns[name]
            column._data[row - column.base] = value
        return row

    def get(self, row: int, name: str) -> Any:
        """Value of a row that is still in memory."""
        return self.columns[name].rows(row, row + 1)[0]

    def put(self, row: int, name: str, value: Any) -> None:
        """Change one value of a mutable table."""
        column = self.columns[name]
        column.rows(row, row + 1)[0] = value
        column.dirty.add(row // self.chunk)

    def unset(self, row: int, name: str) -> bool:
        """Whether the value is the fill value."""
        value, fill = self.get(row, name), self.columns[name].variable.fill
        return bool(value == fill or (value != value and fill != fill))

    def values(self, name: str) -> np.ndarray[Any, Any]:
        """All rows of a variable of a mutable table."""
        return self.columns[name].rows(0, self.rows)

    def widen(self, width: int) -> None:
        """Lengthen the second axis of the table's two-dimensional variable; never shortens."""
        if width <= self.width:
            return
        for column in self.columns.values():
            if column.variable.axis:
                column.widen(width)
                column.dirty.add(max(0, self.rows - 1) // self.chunk)
        self.width = width
        self._metadata_dirty = True

    def touch(self) -> None:
        """Write the metadata anew at the next commit (the vocabulary grew)."""
        self._metadata_dirty = True

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Take up the state of stored arrays: all rows of a mutable table, else the last chunk's."""
        first = next(iter(arrays.values()))
        self.rows, self.chunk = int(first.shape[0]), int(first.chunks[0])
        self._created = self.rows > 0
        base = 0 if self.group.mutable else self.rows // self.chunk * self.chunk
        for name, column in self.columns.items():
            array = arrays[name]
            if column.variable.axis:
                self.width, self.chunk_width = int(array.shape[1]), int(array.chunks[1])
                column.widen(self.width)
            column.base = base
            column.reserve(self.rows)
            self._capacity = self.rows
            column.rows(base, self.rows)[...] = np.asarray(array[base:])
        self._metadata_dirty = False

    def metadata(self, words: list[str]) -> Iterator[Item]:
        """Array metadata to write, before any chunk."""
        if not self._metadata_dirty:
            return
        if self.rows and not self._created:
            self.chunk_width = max(8, -(-self.width // 8) * 8)
        for column in self.columns.values():
            yield f"{self.group.where}/{column.variable.name}/zarr.json", self._array_metadata(column.variable, words)

    def chunks(self) -> Iterator[Item]:
        """Chunks to write."""
        for name, column in self.columns.items():
            for number in sorted(column.dirty | self._appended):
                start, stop = number * self.chunk, min(self.rows, (number + 1) * self.chunk)
                if start < stop:
                    yield from self._encode(f"{self.group.where}/{name}/c/{number}", column, start, stop)

    def committed(self) -> None:
        """The store has everything: nothing is dirty, and full chunks need no memory."""
        self._metadata_dirty = False
        self._created = self._created or self.rows > 0
        self._appended.clear()
        tail = self.rows // self.chunk * self.chunk
        for column in self.columns.values():
            column.dirty.clear()
            if not self.group.mutable and tail > column.base:
                column.forget(tail)
        self._capacity = min(column.end for column in self.columns.values())

    def _encode(self, key: str, column: Column, start: int, stop: int) -> Iterator[Item]:
        rows = column.rows(start, stop)
        if not column.variable.axis:
            yield key, encode(rows, (self.chunk,), column.variable)
            return
        shape = (self.chunk, self.chunk_width)
        for j in range(-(-self.width // self.chunk_width)):
            part = rows[:, j * self.chunk_width : (j + 1) * self.chunk_width]
            yield f"{key}/{j}", encode(part, shape, column.variable)

    def _array_metadata(self, variable: Variable, words: list[str]) -> bytes:
        shape, chunks = [self.rows], [self.chunk]
        names = [self.group.dim]
        if variable.axis:
            shape, chunks, names = [*shape, self.width], [*chunks, self.chunk_width], [*names, variable.axis]
        return array_metadata(variable, shape, chunks, names, words)


def encode(rows: np.ndarray[Any, Any], shape: tuple[int, ...], variable: Variable) -> bytes:
    """Bytes of one chunk: ``rows`` in its corner, the fill value around."""
    chunk = np.full(shape, variable.fill, variable.numpy)
    chunk[tuple(slice(0, n) for n in rows.shape)] = rows
    if variable.dtype == "string":
        return bytes(_zstd.encode(_texts.encode(chunk)))
    return bytes(_zstd.encode(chunk.astype(chunk.dtype.newbyteorder("<"), copy=False).tobytes()))


def array_metadata(
    variable: Variable, shape: Iterable[int], chunks: Iterable[int], names: Iterable[str], words: list[str]
) -> bytes:
    """``zarr.json`` of one array (Zarr v3)."""
    fill = "NaN" if isinstance(variable.fill, float) and math.isnan(variable.fill) else variable.fill
    if variable.dtype == "string":
        codec: dict[str, Any] = {"name": "vlen-utf8", "configuration": {}}
    elif variable.numpy.itemsize == 1:
        codec = {"name": "bytes"}
    else:
        codec = {"name": "bytes", "configuration": {"endian": "little"}}
    return json.dumps(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(shape),
            "data_type": variable.dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": fill,
            "codecs": [codec, _ZSTD],
            "attributes": attributes(variable, words),
            "dimension_names": list(names),
            "storage_transformers": [],
        }
    ).encode()


def group_metadata(attrs: Mapping[str, Any]) -> bytes:
    """``zarr.json`` of one group (Zarr v3)."""
    return json.dumps({"zarr_format": 3, "node_type": "group", "attributes": dict(attrs)}, allow_nan=False).encode()
