"""Opening a tape: checked before anything large is read, lazy, every failure one `TapeError`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr
from xarray.backends import BackendArray
from xarray.core import indexing

from workbench.tape import store
from workbench.tape.beginnings import has_begun, is_written, nothing_recorded
from workbench.tape.checks import checked_arrays
from workbench.tape.errors import StorageFull, TapeError, damaged, reading
from workbench.tape.journal import read_header
from workbench.tape.lock import held
from workbench.tape.metadata import check_root
from workbench.tape.recorder import Recorder
from workbench.tape.run_folder import RunFolder
from workbench.tape.schema import GROUPS

EAGER_BYTES = 64 << 20
"""A tape that still grows is read at once up to this size, so that compaction cannot pull it away."""
_TRIES = 3


def open_tape(path: str | Path) -> xr.DataTree:
    """Open a tape, while its run goes on and after.

    A run that crashed is completed first: what its journal has beyond the tape is drained into it (in
    memory where the folder cannot be written, or the disk is full).  While a run goes on the tape reaches
    to the recorder's last commit.

    Parameters
    ----------
    path : path
        A run folder, or a tape's own folder.

    Returns
    -------
    xarray.DataTree
        Groups of DESIGN section 3; ``tree.wb`` navigates.  ``attrs["torn_bytes"]`` counts what was cut from the end of
        the journal of a run folder because it is no whole record.

    Raises
    ------
    TapeError
        For a folder without a tape, a run that is still starting, a store of something else, a newer schema or a
        damaged tape.

    Examples
    --------
    >>> open_tape("/no/such/run")
    Traceback (most recent call last):
    ...
    workbench.tape.errors.TapeError: /no/such/run holds no tape: there is no such folder; give a run folder or ...
    """
    path = Path(path)
    folder = RunFolder(path)
    if folder.config.exists() and not has_begun(folder):
        raise nothing_recorded(folder)
    if folder.journal.exists() and not store.is_repository(path):
        return _open_run(folder)
    inner = folder.tape if folder.tape.is_dir() else path
    return _tree(store.open_repository(inner), inner)


def _open_run(folder: RunFolder) -> xr.DataTree:
    """Open the tape of a run folder, completed from its journal if nobody writes it."""
    for attempt in range(_TRIES):
        try:
            return _opened(folder)
        except TapeError as error:
            # the recorder may have compacted, or begun, between two of our reads
            if attempt == _TRIES - 1 or not held(folder.tape_lock):
                if is_written(folder) and not folder.tape.exists():
                    raise nothing_recorded(folder) from error
                raise
    raise AssertionError("the last try returns or raises")


def _opened(folder: RunFolder) -> xr.DataTree:
    written = held(folder.journal_lock) or held(folder.tape_lock)
    if not written and _behind(folder):
        if not _writable(folder):
            return _in_memory(folder)
        try:
            _complete(folder)
        except StorageFull:
            return _in_memory(folder)
    return _with_torn_bytes(_tree(store.open_repository(folder.tape), folder.tape), folder, written)


def _with_torn_bytes(tree: xr.DataTree, folder: RunFolder, written: bool = False) -> xr.DataTree:
    """Name the tree after its run, and say how many bytes of the journal are no whole record.

    Those are what a crash in mid-write left; a writer that went on has set them aside in files of their own.
    """
    tree.name = folder.path.resolve().name
    aside = sum(path.stat().st_size for path in folder.path.glob(f"{folder.journal.name}.cut-*"))
    behind = 0 if written else folder.journal.stat().st_size - int(tree.attrs["journal_offset"])
    tree.attrs["torn_bytes"] = aside + max(0, behind)
    return tree


def _behind(folder: RunFolder) -> bool:
    """Whether the journal has bytes that the tape lacks."""
    if not folder.tape.exists():
        return True
    attrs = store.root_attributes(store.open_repository(folder.tape), folder.tape)
    offset = int(check_root(attrs, folder.tape)["journal_offset"])
    if offset == folder.journal.stat().st_size:
        _check_config(attrs, folder)
    return offset < folder.journal.stat().st_size


def _check_config(attrs: dict[str, Any], folder: RunFolder) -> None:
    """Refuse a tape whose configuration is not the one that its journal begins with: the store sums no metadata."""
    try:
        header = read_header(folder.journal)
    except TapeError:
        return  # a whole tape is read without its journal
    if header.get("run_id") == attrs["run_id"] and header.get("config") != attrs.get("config"):
        raise damaged(folder.tape, "its configuration is not that of the journal beside it")


def _writable(folder: RunFolder) -> bool:
    paths = [folder.path, *(path for path in (folder.tape, folder.tape_lock) if path.exists())]
    return all(os.access(path, os.W_OK) for path in paths)


def _complete(folder: RunFolder) -> None:
    """Drain what a crashed run left in its journal; the run's tape is not marked closed."""
    recorder = Recorder(folder)
    try:
        recorder.drain()
    finally:
        recorder.release()


def _in_memory(folder: RunFolder) -> xr.DataTree:
    """Lay the tape from the journal alone, where its folder takes nothing more."""
    recorder = Recorder(folder, in_memory=True)
    recorder.drain()
    return _with_torn_bytes(_tree(recorder.repository, folder.path), folder)


def _tree(repository: Any, path: Path) -> xr.DataTree:
    with reading(path):
        root = zarr.open_group(store.read_store(repository), mode="r")
        attrs = check_root(dict(root.attrs), path)
        members = dict(root.members(max_depth=1))
        arrays = checked_arrays(members, attrs["rows"], path)
        eager = not attrs["closed"] and sum(array.nbytes for array in arrays.values()) <= EAGER_BYTES
        data = store.read_all(arrays) if eager else {}
        datasets: dict[str, xr.Dataset] = {"/": xr.Dataset(attrs=attrs)}
        for where in dict.fromkeys(group.where for group in GROUPS.values()):
            mine = {name: array for name, array in arrays.items() if name.startswith(f"{where}/")}
            variables = {n.rpartition("/")[2]: _variable(a, data.get(n), path) for n, a in mine.items()}
            title = dict(members[where].attrs) if where in members else {}
            datasets[f"/{where}"] = xr.Dataset(variables or _empty(where), attrs=title)
        return xr.DataTree.from_dict(datasets, name=path.name)


def _empty(where: str) -> dict[str, xr.Variable]:
    """Variables of a table that a tape was made without."""
    group = GROUPS[where]
    shapes = {v.name: ((group.dim, v.axis), (0, 0)) if v.axis else ((group.dim,), (0,)) for v in group.variables}
    return {v.name: xr.Variable(shapes[v.name][0], np.empty(shapes[v.name][1], v.numpy)) for v in group.variables}


class _TapeArray(BackendArray):
    """Lazy array whose failures name the tape."""

    def __init__(self, array: Any, path: Path) -> None:
        self._array, self._path = array, path
        self.shape = array.shape
        self.dtype = store.memory_dtype(array)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        with reading(self._path):
            return np.asarray(self._array.oindex[key], self.dtype)


def _variable(array: Any, data: np.ndarray[Any, Any] | None, path: Path) -> xr.Variable:
    lazy = indexing.MemoryCachedArray(indexing.LazilyIndexedArray(_TapeArray(array, path)))
    return xr.Variable(array.metadata.dimension_names, lazy if data is None else data, dict(array.attrs))
