"""How the details of records are laid into the tables of their kind, and what is left over.

A detail that its table's column gives back as an equal value is stored there alone.  Anything else
(unknown keys, values of another type) goes to /details as it is, so that no record loses anything.
"""

from __future__ import annotations

from typing import Any

from workbench.tape.arrays import Table
from workbench.tape.schema import Variable

_LIMITS = {"int8": (-128, 127), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1)}
_INT64, _UINT64 = (-(2**63), 2**63 - 1), (0, 2**64 - 1)


def fits(variable: Variable, value: Any) -> bool:
    """Whether the column gives ``value`` back as an equal value that is not its fill."""
    if variable.dtype == "float64":
        return (isinstance(value, float) and value == value) or (isinstance(value, int) and abs(value) <= 2**53)
    if not isinstance(value, int):
        return False
    low, high = _UINT64 if variable.dtype == "uint64" else _LIMITS.get(variable.dtype, _INT64)
    return low <= value <= high and value != variable.fill


def split(table: Table, detail: dict[str, Any], names: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a detail into column values and the rest.

    Parameters
    ----------
    table : Table
        The kind's table.
    detail : dict
        The record's detail.
    names : dict of str to str
        Column for each key that has one.
    """
    columns, rest = {}, {}
    for key, value in detail.items():
        name = names.get(key)
        if name is not None and fits(table.columns[name].variable, value):
            columns[name] = value
        else:
            rest[key] = value
    return columns, rest


def whole_list(value: Any, variable: Variable) -> bool:
    """Whether ``value`` is a list that the columns of consecutive cells give back."""
    return isinstance(value, list | tuple) and all(fits(variable, item) for item in value)
