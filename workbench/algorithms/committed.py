"""The syncer's committed slots in a mapped file of the run folder: SIGKILL at any point loses no merge (PROTOCOL 6)."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from workbench.algorithms.digest import digest
from workbench.algorithms.fragment_slots import HEADER_WORDS, FragmentSlots
from workbench.algorithms.reserving import reserve
from workbench.config import ConfigError

MAGIC = 0x31544D43_42574444
PAGE = 4096
ALIGN = 64


def mapped_slots(
    path: Path, sizes: Sequence[int], slot_count: int, outer_vectors: int, *, write: bool = True
) -> list[FragmentSlots]:
    """Slots of every fragment in the file at ``path``; made blank if it is not there and ``write`` is set.

    Parameters
    ----------
    path : Path
    sizes : sequence of int
        Parameters of each fragment.
    slot_count, outer_vectors : int
        Slots of a fragment, and vectors of outer state in a slot.
    write : bool
        False maps the arrays read-only: a reader takes ``header`` before and after (0 while a slot is written).

    Raises
    ------
    ConfigError
        If the file is of other sizes.
    OSError
        If there is no room for it: all of it is reserved at once.
    """
    head = _head(sizes, slot_count, outer_vectors)
    nbytes = PAGE + sum(_fragment_bytes(size, slot_count, outer_vectors) for size in sizes)
    if write and not path.exists():
        reserve(path, nbytes, head, durable=True)  # a file of zeros is a set of blank slots
    fd = os.open(path, (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if os.fstat(fd).st_size != nbytes or os.pread(fd, head.nbytes, 0) != head.tobytes():
            raise ConfigError(
                f"{path} has {os.fstat(fd).st_size} bytes; {len(sizes)} fragments of {sum(sizes)} parameters in "
                f"{slot_count} slots with {outer_vectors} outer vectors need {nbytes}: the file of another config"
            )
        access = mmap.PROT_READ | (mmap.PROT_WRITE if write else 0)
        raw = np.frombuffer(mmap.mmap(fd, nbytes, mmap.MAP_SHARED, access), np.uint8)
    finally:
        os.close(fd)
    return _cut(raw, sizes, slot_count, outer_vectors)


def _head(sizes: Sequence[int], slot_count: int, outer_vectors: int) -> np.ndarray:
    shape = digest(np.array(sizes, np.int64).tobytes()) >> 1
    return np.array([MAGIC, len(sizes), slot_count, outer_vectors, shape], np.int64)


def _row_bytes(size: int) -> int:
    return -(-size * 4 // ALIGN) * ALIGN


def _header_bytes(slot_count: int) -> int:
    return -(-slot_count * HEADER_WORDS * 8 // ALIGN) * ALIGN


def _fragment_bytes(size: int, slot_count: int, outer_vectors: int) -> int:
    return _header_bytes(slot_count) + slot_count * (1 + outer_vectors) * _row_bytes(size)


def _cut(raw: np.ndarray, sizes: Sequence[int], slot_count: int, outer_vectors: int) -> list[FragmentSlots]:
    found = []
    at = PAGE
    for size in sizes:
        row = _row_bytes(size)
        header = raw[at : at + slot_count * HEADER_WORDS * 8].view(np.int64).reshape(slot_count, HEADER_WORDS)
        at += _header_bytes(slot_count)
        theta = raw[at : at + slot_count * row].view(np.float32).reshape(slot_count, row // 4)
        at += slot_count * row
        outer = raw[at : at + slot_count * outer_vectors * row].view(np.float32)
        at += slot_count * outer_vectors * row
        found.append(
            FragmentSlots(theta[:, :size], outer.reshape(slot_count, outer_vectors, row // 4)[..., :size], header)
        )
    return found
