"""Sizes of a stored tape, looked at before anything is allocated for its arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import zarr

from workbench.tape.errors import TapeError, damaged
from workbench.tape.journal import PROCESSES_MAX
from workbench.tape.plain_rows import FRAGMENTS_MAX
from workbench.tape.schema import GROUPS, Group, Variable
from workbench.tape.store import stored_chunks

CHUNK_BYTES_MAX = 1 << 30
UNCHECKED_BYTES = 16 << 20
"""Arrays up to this size are not asked whether the store holds all their chunks."""
AXIS_MAX = {"process": PROCESSES_MAX, "learner": PROCESSES_MAX, "fragment": FRAGMENTS_MAX}


def checked_arrays(members: dict[str, Any], rows: Any, path: Path) -> dict[str, Any]:
    """All arrays of the schema, after a look at their sizes alone.

    Raises
    ------
    TapeError
        For an array that is missing, of another type, longer than the rows that the tape claims, or
        that claims more chunks than the store holds.
    """
    found: dict[str, Any] = {}
    for group in GROUPS.values():
        claimed = rows.get(group.name) if isinstance(rows, dict) else None
        if claimed is None and group.added:
            continue
        if not isinstance(claimed, int) or claimed < 0:
            raise damaged(path, f"its root does not say how many rows /{group.where} has")
        for variable in group.variables:
            name = f"{group.where}/{variable.name}"
            if not isinstance(members.get(name), zarr.Array):
                raise damaged(path, f"/{name} is missing")
            found[name] = members[name]
            _check_array(members[name], group, variable, claimed, path)
    return found


def _check_array(array: Any, group: Group, variable: Variable, claimed: int, path: Path) -> None:
    name, dims = f"/{array.path}", (group.dim, variable.axis) if variable.axis else (group.dim,)
    stored = array.metadata.to_dict()["data_type"]
    if stored != variable.dtype or array.metadata.dimension_names != dims:
        found = f"type {stored} and dims {array.metadata.dimension_names}"
        raise damaged(path, f"{name} has {found}, not {variable.dtype} and {dims}")
    if array.shape[0] != claimed:
        raise damaged(path, f"{name} has {array.shape[0]} rows, but the tape says {claimed} for /{group.where}")
    if variable.axis and array.shape[1] > AXIS_MAX[variable.axis]:
        raise TapeError(f"{path} is refused: {name} has {array.shape[1]} columns; allowed: {AXIS_MAX[variable.axis]}")
    itemsize = variable.numpy.itemsize
    if int(np.prod(array.chunks, dtype=object)) * itemsize > CHUNK_BYTES_MAX:
        raise TapeError(f"{path} is refused: a chunk of {name} has shape {array.chunks}, over {CHUNK_BYTES_MAX} bytes")
    size = int(np.prod(array.shape, dtype=object)) * itemsize
    if size > UNCHECKED_BYTES and stored_chunks(array) < -(-array.shape[0] // array.chunks[0]):
        raise damaged(path, f"{name} claims {size} bytes, but the store lacks the chunks for them")
