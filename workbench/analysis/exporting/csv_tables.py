"""A tape as a folder of CSV files, one for each table.

What an event, a contribution or a process does not have is an empty cell; codes stand as the words that they mean;
what has a second axis has a column for each of its places.  A cell of text that a spreadsheet would take for a formula
begins with an apostrophe.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import xarray as xr

from workbench.analysis.exporting.blocks import blocks
from workbench.tape.schema import DETAILS, GROUPS, INPUTS, Group, Variable

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First letters of a text that a spreadsheet may execute (DESIGN section 10)."""

Cell = Callable[[Any], Any]


def write(tape: xr.DataTree, folder: Path) -> None:
    """Write every table into ``folder``."""
    for group in GROUPS.values():
        if group.dim == "byte":
            continue
        with (folder / f"{group.name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            for row in _rows(tape, group):
                writer.writerow(row)


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    Examples
    --------
    >>> guarded("=1+1"), guarded("L0")
    ("'=1+1", 'L0')
    """
    return f"'{text}" if text.startswith(FORMULA) else text


def _rows(tape: xr.DataTree, group: Group) -> Iterator[list[Any]]:
    """Head and rows of a table."""
    table = tape[group.where].dataset
    variables = [v for v in group.variables if v.name in table]
    if group in (DETAILS, INPUTS):
        yield from _with_slices(tape, group, variables)
        return
    yield [name for v in variables for name in _heads(tape, v, table)]
    cells = [cell_of(v, list(tape.attrs["words"])) for v in variables]
    for columns in blocks(table, group.dim, [v.name for v in variables]):
        parts = [_cells(column, cell) for column, cell in zip(columns, cells, strict=True)]
        for row in zip(*parts, strict=True):
            yield [value for part in row for value in part]


def _cells(column: np.ndarray[Any, Any], cell: Cell) -> Iterator[list[Any]]:
    """Cells that a variable has in each row."""
    for value in column.tolist():
        yield [cell(x) for x in value] if column.ndim == 2 else [cell(value)]


def _heads(tape: xr.DataTree, variable: Variable, table: xr.Dataset) -> list[str]:
    if not variable.axis:
        return [variable.name]
    places = range(table.sizes.get(variable.axis, 0))
    letter = {"learner": "L", "fragment": "p"}.get(variable.axis, "")
    labels = tape.wb.labels if variable.axis == "process" else [f"{letter}{at}" for at in places]
    return [f"{variable.name}_{labels[at] if at < len(labels) else at}" for at in places]


def cell_of(variable: Variable, words: list[str]) -> Cell:
    """What makes a cell of a value of a variable."""
    if variable.words:
        return lambda code: guarded(words[code]) if 0 <= code < len(words) else ""
    if variable.flags:
        meanings = dict(variable.flags)
        return lambda code: meanings.get(code, "")
    if variable.dtype == "string":
        return lambda text: guarded(str(text))
    if variable.numpy.kind == "f":
        return lambda number: "" if math.isnan(number) else repr(number)
    empty = variable.fill if variable.fill in (-1, -2) else None
    return lambda number: "" if number == empty else number


def _with_slices(tape: xr.DataTree, group: Group, variables: list[Variable]) -> Iterator[list[Any]]:
    """Rows of a table that names slices of bytes: what an event has beyond its columns as JSON, inputs as hex."""
    table, data = tape[group.where].dataset, tape[group.where].dataset["data"]
    plain = [v for v in variables if v.name not in ("offset", "bytes")]
    cells = [cell_of(v, []) for v in plain]
    yield [*(v.name for v in plain), "detail" if group is DETAILS else "data_hex"]
    for *columns, offset, length in blocks(table, group.dim, [*(v.name for v in plain), "offset", "bytes"]):
        if not len(offset):
            continue
        first = int(offset.min())
        slab = np.asarray(data[first : int((offset + length).max())].values).tobytes()
        for *values, start, size in zip(*(c.tolist() for c in columns), offset.tolist(), length.tolist(), strict=True):
            piece = slab[start - first : start - first + size]
            yield [*(cell(value) for cell, value in zip(cells, values, strict=True)), _text(group, piece)]


def _text(group: Group, piece: bytes) -> str:
    if group is INPUTS:
        return piece.hex()
    return guarded(json.dumps(msgspec.msgpack.decode(piece)[0], sort_keys=True, default=str))
