"""UPDATE payloads on their way to several learners: one copy for each version of a fragment, whoever gets it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from workbench.engine.blocks import BlockWriter, Descriptor
from workbench.engine.frames import Chunked
from workbench.engine.transfers import Queue, Staged, Staging

UPDATE_SLOTS = 3
"""Versions of a fragment that are there for slow readers; who is slower gets the newest again (PROTOCOL section 7)."""
PREFIX = "s-"


class Publisher:
    """The syncer's copies: in blocks, one file a fragment, if there is a folder, else in memory.

    Attributes
    ----------
    blocks : str
        Name of the block files before the dot; after it comes the fragment.
    """

    def __init__(self, sizes: Sequence[int], folder: Path | None) -> None:
        self._sizes = list(sizes)
        self._folder = folder
        self._staging = Staging()
        self._writers: dict[int, BlockWriter] = {}
        self._current: dict[int, tuple[int, Descriptor]] = {}
        self.blocks = PREFIX + secrets.token_hex(6) if folder is not None else ""
        if folder is not None:
            for stale in folder.glob(f"{PREFIX}*.*"):  # of a syncer that was killed
                stale.unlink(missing_ok=True)

    def reference(
        self, fragment: int, version: int, payload: np.ndarray, queue: Queue
    ) -> tuple[Descriptor | Chunked, Staged | None]:
        """Where the receiver finds this version, and the bytes that have to follow the message, if any.

        Raises
        ------
        ValueError
            If the payload is not float32 of the fragment's size.
        OSError
            If there is no room for a block file.
        """
        if payload.dtype != np.float32 or payload.shape != (self._sizes[fragment],):
            raise ValueError(
                f"an update of fragment {fragment} has shape {payload.shape} and type {payload.dtype}; "
                f"expected ({self._sizes[fragment]},) and float32"
            )
        if self._folder is None:
            staged = self._staging.put(fragment, version, payload)
            return Chunked(queue.next_transfer(), staged.buffer.nbytes), staged
        held = self._current.get(fragment)
        if held is None or held[0] != version:
            held = self._current[fragment] = (version, self._writer(fragment).write(payload))
        return held[1], None

    def _writer(self, fragment: int) -> BlockWriter:
        writer = self._writers.get(fragment)
        if writer is None:
            assert self._folder is not None
            path = self._folder / f"{self.blocks}.{fragment}"
            writer = self._writers[fragment] = BlockWriter(path, UPDATE_SLOTS, 4 * self._sizes[fragment])
        return writer

    def close(self) -> None:
        """Remove the block files."""
        for writer in self._writers.values():
            writer.close()
