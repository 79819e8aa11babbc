"""Labels of what the analyses return: units and names on every variable."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr

from workbench.analysis.arrays.tables import Array, Tables

Source = Tables | xr.DataTree
"""What an analysis takes: a tape, or the tables of one."""


def dataset(dim: str, columns: Mapping[str, Array], names: Mapping[str, tuple[str, str]]) -> xr.Dataset:
    """Dataset along one dim; ``names`` holds (units, long_name) of each variable."""
    data = {name: (dim, values, attrs(names.get(name, ("1", name)))) for name, values in columns.items()}
    return xr.Dataset(data)


def attrs(pair: tuple[str, str]) -> dict[str, str]:
    """Attributes of a variable from (units, long_name)."""
    return {"units": pair[0], "long_name": pair[1]}
