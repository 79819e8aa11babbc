"""A tape as one NetCDF-4 file: a group for each table, units and names as on the tape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import xarray as xr

LEVEL = 4
"""Compression of the arrays (zlib)."""


def write(tape: xr.DataTree, path: Path) -> None:
    """Write a tape; `xarray.open_datatree` reads the same tables and attributes back.

    Attributes that NetCDF cannot hold (tables, none, yes or no, lists of texts) are written as JSON texts, whose names
    the root lists in ``json_attributes``.
    """
    datasets = {node.path: _plain(node.to_dataset(inherit=False)) for node in tape.subtree}
    tree = xr.DataTree.from_dict(datasets)
    encoding = {
        where: {str(name): {"zlib": True, "complevel": LEVEL} for name in data.data_vars if data[name].dtype != object}
        for where, data in datasets.items()
    }
    # HDF5 neither says in a line that a disk is full nor lets go of a file that it could not end: it gets memory
    made = tree.to_netcdf(None, engine="h5netcdf", format="NETCDF4", encoding=encoding)
    path.write_bytes(made)


def _plain(data: xr.Dataset) -> xr.Dataset:
    variables = {}
    for name, variable in data.variables.items():
        variables[name] = variable.copy(deep=False)
        variables[name].attrs = _attributes(variable.attrs)
    return xr.Dataset(variables, attrs=_attributes(data.attrs))


def _attributes(attrs: Any) -> dict[str, Any]:
    found = {str(name): _attribute(value) for name, value in attrs.items()}
    texts = sorted(str(name) for name, value in attrs.items() if not _fits(value))
    return {**found, "json_attributes": json.dumps(texts)} if texts else found


def _fits(value: Any) -> bool:
    numbers = isinstance(value, list) and bool(value) and all(type(item) in (int, float) for item in value)
    return type(value) in (str, int, float) or numbers


def _attribute(value: Any) -> Any:
    return value if _fits(value) else json.dumps(value)
