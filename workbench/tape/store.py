"""The Icechunk repository under a tape: created, opened, written in transactions, compacted.

Stores are made in version 1 of Icechunk's format where the library leaves a choice, so that every
supported version opens them.  References to files outside the store are never authorised.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Iterable
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync

from workbench.tape.arrays import Item, array_metadata, encode
from workbench.tape.errors import StorageFull, TapeError, first_line, reading
from workbench.tape.schema import GROUPS

BRANCH = "main"
FINAL_CHUNK, LARGEST_CHUNK, FINAL_CHUNKS = 16384, 131072, 16
"""Rows per chunk once the run is over: of long tapes more, so that a column has about so many chunks.  Few files, a
column is read at once, and one row still within milliseconds."""

if "ICECHUNK_LOG" not in os.environ:
    icechunk.set_logs_filter("off")


def create(path: Path | None) -> Any:
    """Make an empty repository in the folder ``path``, or in memory."""
    more: dict[str, Any] = (
        {"spec_version": 1} if "spec_version" in inspect.signature(icechunk.Repository.create).parameters else {}
    )
    storage = icechunk.in_memory_storage() if path is None else icechunk.local_filesystem_storage(str(path))
    with writing(path or "memory"):
        return icechunk.Repository.create(storage, **more)


def is_repository(path: Path) -> bool:
    """Whether a folder looks like an Icechunk repository, of whichever format version."""
    return (
        path.is_dir() and ((path / "refs").is_dir() or (path / "repo").exists()) and not (path / "zarr.json").exists()
    )


def open_repository(path: Path) -> Any:
    """Open the repository in a folder.

    Raises
    ------
    TapeError
        When there is none, or it cannot be read.
    """
    if not path.is_dir():
        what = "it is a file" if path.exists() else "there is no such folder"
        raise TapeError(f"{path} holds no tape: {what}; give a run folder or its tape/ folder")
    if not is_repository(path):
        kind = "a Zarr store of something else" if _is_zarr(path) else "no tape"
        raise TapeError(f"{path} holds {kind}; expected a folder that workbench train wrote, or its tape/ folder")
    with reading(path):
        return icechunk.Repository.open(icechunk.local_filesystem_storage(str(path)))


def _is_zarr(path: Path) -> bool:
    return any((path / name).exists() for name in ("zarr.json", ".zgroup", ".zmetadata"))


def read_store(repository: Any) -> Any:
    """Zarr store of the newest commit, read-only; it never changes under the reader."""
    return repository.readonly_session(BRANCH).store


def root_attributes(repository: Any, path: Path) -> dict[str, Any]:
    """Attributes of the root group in the newest commit."""
    with reading(path):
        return dict(zarr.open_group(read_store(repository), mode="r").attrs)


def memory_dtype(array: Any) -> np.dtype[Any]:
    """Dtype of a stored array in memory: texts are objects."""
    return np.dtype(object) if array.dtype.kind in "TUO" else np.dtype(array.dtype)


def read_all(arrays: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Read whole arrays, many at a time."""

    async def read() -> list[Any]:
        return await asyncio.gather(*(array.async_array.getitem(...) for array in arrays.values()))

    values: list[Any] = sync(read())
    return {name: np.asarray(v, memory_dtype(arrays[name])) for name, v in zip(arrays, values, strict=True)}


def stored_chunks(array: Any) -> int:
    """Chunks along the rows that the store holds, by its listing and not by the array's shape."""
    prefix = f"{array.path}/"

    async def count() -> int:
        keys = [key.removeprefix(prefix).split("/") async for key in array.store.list_prefix(prefix)]
        return len({parts[1] for parts in keys if parts[0] == "c"})

    return int(sync(count()))


class ClockStepped(TapeError):
    """The last commit lies in the future of this machine's clock, which somebody has set back: none can follow it."""


@contextmanager
def writing(what: Any) -> Any:
    """Turn whatever the store raises while it is written into a `TapeError`."""
    try:
        yield
    except TapeError:
        raise
    except (icechunk.IcechunkError, OSError) as error:
        text = str(error).lower()
        if any(sign in text for sign in ("no space left", "os error 28", "file too large", "quota")):
            raise StorageFull(
                f"no room for the tape in {what}: the disk is full; it is whole up to its last commit, and the journal "
                "beside it holds the rest; free space there and open the run again (workbench inspect)"
            ) from error
        if "timestamp" in text:
            raise ClockStepped(f"the tape in {what} was written later than it is now: {first_line(error)}") from error
        raise TapeError(f"the tape in {what} cannot be written: {first_line(error)}") from error


def commit(repository: Any, metadata: Iterable[Item], chunks: Iterable[Item], message: str) -> None:
    """Write metadata, then chunks, and commit them as one transaction."""
    with writing("its folder"):
        session = repository.writable_session(BRANCH)
        sync(_put(session.store, metadata))
        sync(_put(session.store, chunks))
        session.commit(message)


async def _put(store: Any, items: Iterable[Item]) -> None:
    make = default_buffer_prototype().buffer.from_bytes
    await asyncio.gather(*(store.set(key, make(data)) for key, data in items))


def rechunk(repository: Any, words: list[str]) -> None:
    """Rewrite the arrays that have several chunks with larger ones, in one transaction."""
    with writing("its folder"):
        session = repository.writable_session(BRANCH)
        root = zarr.open_group(session.store, mode="r")
        done = [
            _rechunk_array(session.store, root, name, v.name, words) for name, g in GROUPS.items() for v in g.variables
        ]
        if any(done):
            session.commit("rechunk")


def final_chunk(rows: int, usual: int) -> int:
    """Rows per chunk of a table that grows no more; ``usual``: while it grew.

    Examples
    --------
    >>> final_chunk(1000, 8192), final_chunk(1_000_000, 8192), final_chunk(10**9, 8192)
    (16384, 65536, 131072)
    """
    even = 1 << max(0, -(-rows // FINAL_CHUNKS) - 1).bit_length()
    return max(FINAL_CHUNK, usual, min(even, LARGEST_CHUNK))


def _rechunk_array(store: Any, root: Any, group_name: str, name: str, words: list[str]) -> bool:
    group = GROUPS[group_name]
    variable = group.variable(name)
    path = f"{group.where}/{name}"
    array = root[path]
    rows = array.shape[0]
    final = final_chunk(rows, group.chunk)
    if rows <= array.chunks[0] or array.chunks[0] >= final:
        return False
    values = np.asarray(array[...], variable.numpy)
    chunk = (final, *(max(8, -(-n // 8) * 8) for n in array.shape[1:]))
    metadata = array_metadata(variable, array.shape, chunk, [group.dim, variable.axis][: array.ndim], words)
    suffix = "/0" * (array.ndim - 1)
    chunks = [
        (f"{path}/c/{i}{suffix}", encode(values[i * final : (i + 1) * final], chunk, variable))
        for i in range(-(-rows // final))
    ]
    sync(store.delete_dir(path))
    sync(_put(store, [(f"{path}/zarr.json", metadata)]))
    sync(_put(store, chunks))
    return True


def now() -> datetime:
    """The time that a commit made now would bear."""
    return datetime.now(UTC)


def compact(repository: Any, before: datetime) -> None:
    """Drop commits that bear an earlier time, and the files that only they use."""
    with writing("its folder"):
        repository.expire_snapshots(before)
        repository.garbage_collect(before)
