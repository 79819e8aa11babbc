"""Snapshots on disk: arrays by Orbax, everything else as JSON; complete or absent (PROTOCOL section 13).

A snapshot is the folder ``snapshots/N``: ``manifest.json``, and a folder of arrays for the syncer and for each learner.
It is written under another name, synced, and renamed; what a crash leaves under other names is swept away.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from workbench.algorithms.digest import combine, digest

MANIFEST = "manifest.json"
MANIFEST_BYTES_MAX = 256 << 20
DRAFT = ".draft-"
SYNCER = "syncer"


class SnapshotDamaged(ValueError):
    """A snapshot that is not there, or not what its manifest says."""


def learner_part(learner: int) -> str:
    """Name of a learner's arrays."""
    return f"L{learner}"


def arrays_digest(arrays: Mapping[str, np.ndarray]) -> int:
    """One digest of named arrays, in the order of their names."""
    words = [word for name in sorted(arrays) for word in (digest(name.encode()), digest(arrays[name]))]
    return combine(words)


def write_snapshot(
    folder: Path, number: int, manifest: Mapping[str, Any], parts: Mapping[str, Mapping[str, np.ndarray]]
) -> None:
    """Write a snapshot, whole or not at all.

    Parameters
    ----------
    folder : Path
        ``snapshots`` of the run.
    number : int
    manifest : mapping
        What the machines say of it, as plain values.
    parts : mapping of str to mapping of str to array
        Arrays by part and name.

    Raises
    ------
    OSError
        There is no room; the snapshots that are there stay.
    """
    sweep(folder)
    draft = folder / f"{DRAFT}{number}-{os.getpid()}"
    try:
        draft.mkdir(mode=0o700, parents=True)
        digests = {}
        for name, arrays in parts.items():
            _save(draft / name, arrays)
            digests[name] = f"{arrays_digest(arrays):016x}"
        text = msgspec.json.format(msgspec.json.encode({**manifest, "digests": digests}), indent=1)
        (draft / MANIFEST).write_bytes(text)
        _sync(draft)
        target = folder / str(number)
        shutil.rmtree(target, ignore_errors=True)
        draft.rename(target)
        _sync_one(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def sweep(folder: Path) -> None:
    """Remove what writers that died have left, those of processes that live excepted."""
    for stale in folder.glob(f"{DRAFT}*"):
        pid = stale.name.rpartition("-")[2]
        if pid.isdigit() and int(pid) != os.getpid() and Path(f"/proc/{pid}").exists():
            continue
        shutil.rmtree(stale, ignore_errors=True)


def snapshots(folder: Path) -> list[int]:
    """Numbers of the snapshots that are there, ascending; the first weights (0) do not count."""
    found = [int(path.parent.name) for path in folder.glob(f"*/{MANIFEST}") if path.parent.name.isdigit()]
    return sorted(number for number in found if number > 0)


def keep_newest(folder: Path, count: int) -> None:
    """Remove all but the newest ``count`` snapshots; 0 keeps all."""
    for number in snapshots(folder)[: -count if count else 0]:
        shutil.rmtree(folder / str(number), ignore_errors=True)


def read_manifest(folder: Path, number: int) -> dict[str, Any]:
    """What a snapshot says of itself.

    Raises
    ------
    SnapshotDamaged
        There is none with this number, or it cannot be read.
    """
    path = folder / str(number) / MANIFEST
    try:
        if path.stat().st_size > MANIFEST_BYTES_MAX:
            raise SnapshotDamaged(f"{path} has {path.stat().st_size} bytes; allowed: up to {MANIFEST_BYTES_MAX}")
        found = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError as error:
        there = ", ".join(map(str, snapshots(folder))) or "none"
        raise SnapshotDamaged(f"there is no snapshot {number} in {folder}; there are: {there}") from error
    except (OSError, msgspec.MsgspecError) as error:
        raise SnapshotDamaged(f"{path} cannot be read: {error}") from error
    if found.get("snapshot") != number or not isinstance(found.get("digests"), dict):
        raise SnapshotDamaged(f"{path} is no manifest of snapshot {number}")
    return found


def read_part(folder: Path, number: int, part: str) -> dict[str, np.ndarray]:
    """Arrays of one part by name, compared with the digest in the manifest.

    Raises
    ------
    SnapshotDamaged
        The part is not there, or damaged.
    """
    expected = read_manifest(folder, number)["digests"].get(part)
    if expected is None:
        raise SnapshotDamaged(f"snapshot {number} in {folder} holds nothing of {part}")
    arrays = _load(folder / str(number) / part)
    found = f"{arrays_digest(arrays):016x}"
    if found != expected:
        raise SnapshotDamaged(f"{part} of snapshot {number} in {folder} has digest {found}; expected {expected}")
    return arrays


def _save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    import orbax.checkpoint as ocp  # loaded where snapshots are written, not by every process

    with ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(path.resolve(), {name.replace("/", "."): np.asarray(array) for name, array in arrays.items()})


def _load(path: Path) -> dict[str, np.ndarray]:
    import orbax.checkpoint as ocp

    try:
        with ocp.PyTreeCheckpointer() as checkpointer:
            found = checkpointer.restore(path.resolve())
    except (ValueError, OSError, KeyError) as error:
        raise SnapshotDamaged(f"{path} cannot be read: {str(error).partition(chr(10))[0]}") from error
    return {name.replace(".", "/"): np.array(array) for name, array in found.items()}


def _sync(folder: Path) -> None:
    """Have all that is below a folder on the disk."""
    for path in _below(folder):
        _sync_one(path)


def _below(folder: Path) -> Iterator[Path]:
    for root, _, files in os.walk(folder, topdown=False):
        yield from (Path(root) / name for name in files)
        yield Path(root)


def _sync_one(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
