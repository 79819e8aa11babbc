"""A learner's blocks: slots for its captures, and views of the syncer's updates."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from workbench.engine.blocks import BlockError, BlockReader, BlockWriter, Descriptor
from workbench.engine.frames import Chunked, FrameError, Free, encode
from workbench.engine.publishing import UPDATE_SLOTS
from workbench.engine.transfers import Queue, Staged, Waiting


class Captures:
    """Captures that the syncer reads in place; a slot is written again when the syncer has given it back.

    Each connection has a file of its own: what the syncer still reads of an ended one is never written again.

    Parameters
    ----------
    path : Path or None
        None across machines: no capture has room.
    slots, size : int
        Slots, and bytes of one.
    """

    def __init__(self, path: Path | None, slots: int, size: int) -> None:
        self._path = path
        self._slots = slots
        self._size = size
        self._writer: BlockWriter | None = None
        self._used: dict[int, int] = {}

    @property
    def used(self) -> int:
        """Slots that the syncer has not given back."""
        return len(self._used)

    def put(self, payload: np.ndarray) -> Descriptor | None:
        """Copy a payload (nbytes,) into a slot; None if there is no room, on tmpfs or in the slots."""
        slot = next((slot for slot in range(self._slots) if slot not in self._used), None)
        if slot is None or payload.nbytes > self._size or self._path is None:
            return None
        if self._writer is None:
            with suppress(OSError):
                self._writer = BlockWriter(self._path, self._slots, self._size)
        if self._writer is None:
            return None
        descriptor = self._writer.write(payload, slot)
        self._used[slot] = descriptor.generation
        return descriptor

    def waiting(self, head: bytes, payload: np.ndarray, queue: Queue) -> Waiting:
        """A message whose payload goes through a slot if one is free, else in chunks."""
        source = np.ascontiguousarray(payload).reshape(-1).view(np.uint8)
        descriptor = self.put(source)
        if descriptor is not None:
            return Waiting((head, encode(descriptor)))
        reference = Chunked(queue.next_transfer(), source.nbytes)
        return Waiting((head, encode(reference)), reference, Staged(source))

    def free(self, freed: Free) -> None:
        """Note that the syncer gave a slot back."""
        if self._used.get(freed.slot) == freed.generation:
            del self._used[freed.slot]

    def close(self) -> None:
        """Remove the file."""
        if self._writer is not None:
            self._writer.close()


class Updates:
    """The syncer's blocks of one connection, one file a fragment.

    Parameters
    ----------
    folder : Path or None
        None across machines: there are no blocks.
    sizes : sequence of int
        Parameters of each fragment.
    """

    def __init__(self, folder: Path | None, sizes: Sequence[int]) -> None:
        self._folder = folder
        self._sizes = sizes
        self._readers: dict[int, BlockReader] = {}

    def read(self, blocks: str, fragment: int, descriptor: Descriptor, out: np.ndarray) -> None:
        """Copy an update out: its slot does not wait for slow readers.

        Raises
        ------
        FrameError
            ``reference`` for no block of this syncer, ``late`` if the slot has been written again.
        """
        reader = self._readers.get(fragment)
        if reader is None:
            if self._folder is None or not blocks:
                raise FrameError("reference")
            try:
                reader = BlockReader(self._folder / f"{blocks}.{fragment}", 4 * self._sizes[fragment], UPDATE_SLOTS)
            except (OSError, BlockError):
                raise FrameError("reference") from None
            self._readers[fragment] = reader
        if not reader.read(descriptor, out):
            raise FrameError("late")
