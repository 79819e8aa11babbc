"""Raw rows of an analysis: one line for each, the columns packed into tables as wide as the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from workbench.cli import output

if TYPE_CHECKING:
    import xarray as xr

LONG = ("merge", "contribution", "row", "eval")
"""Dimensions that grow with the run; the others are never cut."""
BETWEEN = 2
"""Blanks between columns."""

Column = tuple[str, list[str]]


def limited(data: xr.Dataset, rows: int) -> xr.Dataset:
    """Return the first rows of a Dataset along what grows with the run; the last for a negative number, all for 0."""
    part = slice(None) if rows == 0 else slice(rows, None) if rows < 0 else slice(rows)
    long = [dim for dim in data.dims if dim in LONG]
    return data.assign_coords({dim: range(data.sizes[dim]) for dim in long}).isel(dict.fromkeys(long, part))


def tables(title: str, data: xr.Dataset, width: int) -> Iterator[Any]:
    """Yield the tables of a Dataset, variables of the same leading dimension together."""
    whole = [
        (str(name), output.number(variable.values)) for name, variable in data.data_vars.items() if not variable.dims
    ]
    if whole:
        yield output.pairs(title, whole)
    leading = {variable.dims[0]: None for variable in data.data_vars.values() if variable.dims}
    for dim in leading:
        first = (str(dim), labels(data, dim))
        columns = [column for column in columns_of(data, dim) if column[0] != dim]
        for part in packed(first, columns, width):
            heads = [f">{name}" for name, _ in part]
            yield output.aligned(title, heads, list(zip(*(cells for _, cells in part), strict=True)))


def labels(data: xr.Dataset, dim: Any) -> list[str]:
    """Return the labels along a dimension, their positions where it has none."""
    values = data[dim].values.tolist() if dim in data.coords else range(data.sizes[dim])
    return [f"L{value}" if dim == "learner" else str(value) for value in values]


def columns_of(data: xr.Dataset, dim: Any) -> Iterator[Column]:
    """Yield heads, with their units, and cells of what lies along a dimension; a second one goes across."""
    for name, variable in {**data.coords, **data.data_vars}.items():
        unit = variable.attrs.get("units", "1")
        head = f"{name} [{unit}]" if unit not in ("", "1") and not str(name).endswith(f"_{unit}") else str(name)
        if variable.dims == (dim,):
            yield head, cells_of(variable.values)
        elif len(variable.dims) == 2 and variable.dims[0] == dim:
            for at, label in enumerate(labels(data, variable.dims[1])):
                yield f"{head} {label}", cells_of(variable.values[:, at])


def cells_of(values: Any) -> list[str]:
    """Return values as texts."""
    return [output.number(value) for value in values.tolist()]


def packed(first: Column, columns: list[Column], width: int) -> Iterator[list[Column]]:
    """Yield groups of columns that fit into the width, each behind the first column."""
    group, used = [first], cell_width(first)
    for column in columns:
        needs = BETWEEN + cell_width(column)
        if len(group) > 1 and used + needs > width:
            yield group
            group, used = [first], cell_width(first)
        group.append(column)
        used += needs
    if len(group) > 1:
        yield group


def cell_width(column: Column) -> int:
    """Return the widest text of a column, its head included."""
    name, cells = column
    return max(map(len, (name, *cells)))
