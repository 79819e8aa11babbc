"""Digests place a difference: at a learner, on the wire, in the merge (DESIGN section 2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import xxhash


def digest(buffer: Any) -> int:
    """xxh3-64 of the bytes of an array or buffer.

    Parameters
    ----------
    buffer : numpy array or any object with the buffer protocol
        Arrays are read in C order; shape and dtype do not enter.

    Returns
    -------
    int
        0 .. 2**64 - 1.

    Examples
    --------
    >>> digest(b"")
    3244421341483603138
    """
    if isinstance(buffer, np.ndarray):
        buffer = np.ascontiguousarray(buffer).reshape(-1).view(np.uint8)
    return xxhash.xxh3_64_intdigest(buffer)


def combine(parts: Iterable[int]) -> int:
    """One digest of several, in order (each enters as 8 little-endian bytes)."""
    return digest(b"".join(part.to_bytes(8, "little") for part in parts))
