"""Payloads in mapped files: written once by their owner, read in place by others; only descriptors travel.

A file holds slots of one size.  Each slot has a generation number before and one after its payload (a seqlock): the
writer raises the first, writes, raises the second; a reader takes the second, copies, and looks at the first again.
So a reader that comes too late learns it and never uses torn data.  Files lie in a runtime folder by path: segments
of `multiprocessing.shared_memory` are unlinked by the tracker of any reader that ends.
"""

from __future__ import annotations

import mmap
import os
import threading
from pathlib import Path

import msgspec
import numpy as np

from workbench.algorithms.reserving import reserve

MAGIC = 0x314B4C42_42574444
PAGE = 4096
ALIGN = 64
SLOTS_MAX = 192
"""What one page of generation numbers, 16 bytes a slot, has room for beside the head of the file."""
_HEAD = 8
_BARRIER = threading.Lock()


class BlockError(ValueError):
    """A mapped file that is not what it should be."""


class Descriptor(msgspec.Struct, tag="mapped", frozen=True, gc=False):
    """Where a payload lies: name of the file, slot, generation and bytes."""

    file: str
    slot: int
    generation: int
    nbytes: int


def _fence() -> None:
    """Order the stores before against those after: two rounds on a lock are a full barrier on every processor."""
    with _BARRIER:
        pass
    with _BARRIER:
        pass


def _stride(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


class _Mapping:
    """Views of a block file: generations (slot, 2) and payload bytes of each slot."""

    def __init__(self, memory: mmap.mmap, slots: int, size: int) -> None:
        raw = np.frombuffer(memory, np.uint8)
        words = raw[:PAGE].view(np.int64)
        self.generations = words[_HEAD : _HEAD + 2 * slots].reshape(slots, 2)
        stride = _stride(size)
        self.slots = [raw[start : start + size] for start in range(PAGE, PAGE + slots * stride, stride)]


def file_bytes(slots: int, size: int) -> int:
    """Bytes of a block file of ``slots`` payloads of at most ``size`` bytes."""
    return PAGE + slots * _stride(size)


class BlockWriter:
    """The one process that writes a block file.

    Parameters
    ----------
    path : Path
        Made anew with mode 0600; a file that is there is replaced, and its readers keep what they have mapped.
    slots : int
        At most `SLOTS_MAX`.
    size : int
        Bytes of the largest payload.

    Raises
    ------
    OSError
        If there is no room: all is reserved here, since a store to a page that is not there would end the process.
    """

    def __init__(self, path: Path, slots: int, size: int) -> None:
        if not 1 <= slots <= SLOTS_MAX or size < 1:
            raise BlockError(f"a block file of {slots} slots of {size} bytes; expected 1 to {SLOTS_MAX} of 1 or more")
        self.path = path
        self.size = size
        memory = _reserve(path, file_bytes(slots, size), np.array([MAGIC, slots, size], np.int64))
        self._mapping = _Mapping(memory, slots, size)
        self._next = 0

    @property
    def slots(self) -> int:
        """Number of slots."""
        return len(self._mapping.slots)

    def write(self, array: np.ndarray, slot: int | None = None) -> Descriptor:
        """Copy the bytes of ``array`` into ``slot``, by default the one written longest ago.

        Raises
        ------
        BlockError
            If it has more bytes than a slot.
        """
        source = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if source.nbytes > self.size:
            raise BlockError(f"a payload of {source.nbytes} bytes; the slots of {self.path.name} have {self.size}")
        if slot is None:
            slot = self._next
            self._next = (slot + 1) % self.slots
        generations = self._mapping.generations[slot]
        generation = int(generations[0]) + 1
        generations[0] = generation
        _fence()
        self._mapping.slots[slot][: source.nbytes] = source
        _fence()
        generations[1] = generation
        return Descriptor(self.path.name, slot, generation, source.nbytes)

    def close(self) -> None:
        """Remove the file; who has it mapped keeps what it holds."""
        self.path.unlink(missing_ok=True)


class BlockReader:
    """Read-only view of somebody's block file.

    Parameters
    ----------
    path : Path
    size, slots_max : int
        Bytes of a slot that the manifest tells, and how many slots there may be: checked before anything is mapped.

    Raises
    ------
    BlockError
        If the file is another's, no plain file, or its sizes are not those expected.
    OSError
        If it cannot be opened.
    """

    def __init__(self, path: Path, size: int, slots_max: int = SLOTS_MAX) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            self.slots = _checked_slots(fd, path, size, slots_max)
            memory = mmap.mmap(fd, file_bytes(self.slots, size), mmap.MAP_SHARED, mmap.PROT_READ)
        finally:
            os.close(fd)
        self.path = path
        self.size = size
        self._mapping = _Mapping(memory, self.slots, size)

    def view(self, descriptor: Descriptor) -> np.ndarray | None:
        """Bytes (nbytes,) of a payload in place, None if it is not there (any more) or cannot be.

        Whoever reads in place needs the writer's word that the slot stays, or asks `holds` afterwards.
        """
        d = descriptor
        if d.file != self.path.name or not 0 <= d.slot < self.slots or not 0 <= d.nbytes <= self.size:
            return None
        return self._mapping.slots[d.slot][: d.nbytes] if self.holds(d) else None

    def holds(self, descriptor: Descriptor) -> bool:
        """Whether the slot of a descriptor still has its generation, whole."""
        before, after = self._mapping.generations[descriptor.slot].tolist()
        return bool(before == after == descriptor.generation > 0)

    def read(self, descriptor: Descriptor, out: np.ndarray) -> bool:
        """Copy a payload into ``out``, a contiguous array of as many bytes; False if it came too late."""
        view = self.view(descriptor)
        if view is None or out.nbytes != view.nbytes:
            return False
        _fence()
        out.reshape(-1).view(np.uint8)[:] = view
        _fence()
        return self.holds(descriptor)


def _checked_slots(fd: int, path: Path, size: int, slots_max: int) -> int:
    found = os.fstat(fd)
    if found.st_uid != os.getuid() or found.st_mode & 0o170077 != 0o100000:
        raise BlockError(f"{path} is not a private file of user {os.getuid()}")
    head = os.pread(fd, 24, 0)
    magic, slots, slot_size = np.frombuffer(head, np.int64).tolist() if len(head) == 24 else (0, 0, 0)
    if magic != MAGIC or not 1 <= slots <= min(slots_max, SLOTS_MAX):
        raise BlockError(f"{path} is no block file of 1 to {slots_max} slots")
    if slot_size != size or found.st_size != file_bytes(slots, size):
        raise BlockError(f"{path} has {found.st_size} bytes in slots of {slot_size}; expected slots of {size}")
    return int(slots)


def _reserve(path: Path, nbytes: int, head: np.ndarray) -> mmap.mmap:
    """A new private file with its pages there, mapped."""
    reserve(path, nbytes, head)
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return mmap.mmap(fd, nbytes)
    finally:
        os.close(fd)
