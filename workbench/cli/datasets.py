"""Datasets as terminal tables: labels, units, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.table import Table

from workbench.cli import output

if TYPE_CHECKING:
    import xarray as xr

ROWS_MAX = 24
"""Rows of a table on the terminal; of longer ones the two ends are shown, and how many lie between."""
COLUMNS_MAX = 6
"""Columns beside the label: more make one table of 80 characters unreadable, so they go to the next."""


def tables(title: str, data: xr.Dataset) -> Iterator[Table | str]:
    """Yield tables for all variables of a Dataset, those of the same dimensions together."""
    scalars = [(label(variable), variable.values) for variable in data.data_vars.values() if variable.ndim == 0]
    if scalars:
        yield output.pairs(title, scalars)
    by_dims: dict[tuple[Any, ...], list[xr.DataArray]] = {}
    for variable in data.data_vars.values():
        by_dims.setdefault(variable.dims, []).append(variable)
    for dims, variables in by_dims.items():
        if len(dims) == 1:
            yield from vectors(title, variables)
        elif len(dims) == 2:
            for variable in variables:
                yield from matrix(variable)
        elif dims:
            names = ", ".join(str(variable.name) for variable in variables)
            yield f"not shown: {names} with {len(dims)} dimensions (--json has them)"


def vectors(title: str, variables: list[xr.DataArray]) -> Iterator[Table | str]:
    """Yield tables with one row for each entry of the dimension and one column for each variable."""
    dim = variables[0].dims[0]
    labels = labels_of(variables[0], dim)
    for first in range(0, len(variables), COLUMNS_MAX):
        part = variables[first : first + COLUMNS_MAX]
        head = [str(dim), *(heading(variable) for variable in part)]
        columns = [variable.values for variable in part]
        rows = [[name, *(column[i] for column in columns)] for i, name in enumerate(labels)]
        yield from shortened(title, head, rows)


def matrix(variable: xr.DataArray) -> Iterator[Table | str]:
    """Yield a table of a variable of two dimensions, the second across."""
    down, across = variable.dims
    columns = labels_of(variable, across)
    if len(columns) > 2 * COLUMNS_MAX:
        yield f"not shown: {label(variable)}, {down} x {across}, {len(columns)} columns (--json has it)"
        return
    rows = [[name, *variable.values[i]] for i, name in enumerate(labels_of(variable, down))]
    yield from shortened(label(variable), [f"{down} / {across}", *columns], rows)


def shortened(title: str, head: list[str], rows: list[list[Any]]) -> Iterator[Table | str]:
    """Yield the table; of a long one both ends, and how many rows are not shown."""
    hidden = len(rows) - ROWS_MAX
    if hidden > 0:
        half = ROWS_MAX // 2
        rows = [*rows[:half], ["…"] + [""] * (len(head) - 1), *rows[-half:]]
    yield output.table(title, head, rows)
    if hidden > 0:
        yield f"not shown: {hidden:,} rows (--json has all)"


def labels_of(variable: xr.DataArray, dim: Any) -> list[str]:
    """Return the labels along a dimension, their positions where it has none."""
    values = variable[dim].values.tolist() if dim in variable.coords else range(variable.sizes[dim])
    return [f"L{value}" if dim == "learner" and isinstance(value, int) else str(value) for value in values]


def label(variable: xr.DataArray) -> str:
    """Return the long name with its unit."""
    return f"{variable.attrs.get('long_name', variable.name)}{unit(variable)}"


def heading(variable: xr.DataArray) -> str:
    """Return the name over its unit."""
    return f"{str(variable.name).replace('_', ' ')}\n{unit(variable).strip()}".rstrip()


def unit(variable: xr.DataArray) -> str:
    """Return ``" [unit]"``, or nothing for a pure number."""
    text = variable.attrs.get("units", "1")
    return f" [{text}]" if text not in ("", "1") else ""
