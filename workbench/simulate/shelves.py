"""Where a virtual run lays its snapshots: on disk, or, if it has no folder of its own, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np

from workbench.training.snapshot_files import SnapshotDamaged, keep_newest, read_manifest, read_part, write_snapshot

Arrays = Mapping[str, np.ndarray]


class Shelf(Protocol):
    """Snapshots by number: a manifest, and parts of named arrays."""

    def write(self, number: int, manifest: Mapping[str, Any], parts: Mapping[str, Arrays]) -> None:
        """Lay a snapshot down, whole or, with an `OSError`, not at all."""

    def manifest(self, number: int) -> dict[str, Any]:
        """What a snapshot says of itself; `SnapshotDamaged` if there is none."""

    def part(self, number: int, name: str) -> dict[str, np.ndarray]:
        """Arrays of one part; `SnapshotDamaged` if there is none."""


class OnDisk:
    """Snapshots in a folder, the newest ``kept`` of them (0: all)."""

    def __init__(self, folder: Path, kept: int) -> None:
        self.folder, self.kept = folder, kept

    def write(self, number: int, manifest: Mapping[str, Any], parts: Mapping[str, Arrays]) -> None:
        """See `Shelf.write`."""
        write_snapshot(self.folder, number, manifest, parts)
        keep_newest(self.folder, self.kept)

    def manifest(self, number: int) -> dict[str, Any]:
        """See `Shelf.manifest`."""
        return read_manifest(self.folder, number)

    def part(self, number: int, name: str) -> dict[str, np.ndarray]:
        """See `Shelf.part`."""
        return read_part(self.folder, number, name)


class InMemory:
    """Snapshots of a run that leaves none behind, the newest ``kept`` of them (0: all)."""

    def __init__(self, kept: int) -> None:
        self.kept = kept
        self._found: dict[int, tuple[bytes, Mapping[str, Arrays]]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> InMemory:
        """Another shelf with the same snapshots: nobody writes into their arrays."""
        copied = InMemory(self.kept)
        copied._found = dict(self._found)
        return copied

    def write(self, number: int, manifest: Mapping[str, Any], parts: Mapping[str, Arrays]) -> None:
        """See `Shelf.write`."""
        self._found[number] = msgspec.json.encode(dict(manifest)), parts
        for old in sorted(self._found)[: -self.kept if self.kept else 0]:
            del self._found[old]

    def manifest(self, number: int) -> dict[str, Any]:
        """See `Shelf.manifest`."""
        found: dict[str, Any] = msgspec.json.decode(self._snapshot(number)[0])
        return found

    def part(self, number: int, name: str) -> dict[str, np.ndarray]:
        """See `Shelf.part`."""
        parts = self._snapshot(number)[1]
        if name not in parts:
            raise SnapshotDamaged(f"snapshot {number} holds nothing of {name}")
        return {key: array.copy() for key, array in parts[name].items()}

    def _snapshot(self, number: int) -> tuple[bytes, Mapping[str, Arrays]]:
        if number not in self._found:
            there = ", ".join(map(str, sorted(self._found))) or "none"
            raise SnapshotDamaged(f"there is no snapshot {number}; there are: {there}")
        return self._found[number]
