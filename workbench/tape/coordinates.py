"""Units and names on the coordinates of whatever an accessor gives: data without them is no data."""

from __future__ import annotations

from typing import Any

import xarray as xr

COORDINATES: dict[str, tuple[str, str]] = {
    "learner": ("1", "id of the learner"),
    "label": ("1", "label of the process"),
    "event": ("1", "number of the event on the tape"),
    "merge": ("1", "number of the merge, from 0"),
    "round": ("1", "round: the global step at which it was due"),
    "fragment": ("1", "fragment of the model"),
    "version": ("1", "version of the fragment"),
    "included": ("1", "1 where a learner's contribution is in the merge"),
    "contributors": ("1", "learners in the merge"),
    "time_s": ("s", "time from the start of rounds"),
    "cause": ("1", "cause of lost time"),
    "state": ("1", "state of a round"),
    "outcome": ("1", "what became of a round"),
    "measure": ("1", "measure of staleness"),
    "unit": ("1", "unit of the measure"),
    "fate": ("1", "fate of tokens"),
    "reason": ("1", "reason of the fate"),
}
"""Coordinates by name: units and long name."""


def described(found: Any) -> Any:
    """Give every variable of a Dataset or DataArray units and a long name where it has none; anything else as it is."""
    if not isinstance(found, xr.Dataset | xr.DataArray):
        return found
    for name in found.coords:
        _fill(found.coords[name].variable.attrs, str(name))
    if isinstance(found, xr.DataArray):
        _fill(found.attrs, str(found.name or "value"))
        return found
    for name in found.data_vars:
        _fill(found.variables[name].attrs, str(name))
    return found


def _fill(attrs: dict[Any, Any], name: str) -> None:
    units, long_name = COORDINATES.get(name, ("1", name.replace("_", " ")))
    attrs.setdefault("units", units)
    attrs.setdefault("long_name", long_name)
