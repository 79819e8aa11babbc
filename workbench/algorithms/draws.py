"""Random draws that depend on names, never on the order in which they are made."""

from __future__ import annotations

import math
from hashlib import blake2b
from struct import pack, unpack


def uniform(seed: int, *names: int) -> float:
    """A number in (0, 1) that is a pure function of the seed and the names."""
    return uniform_pair(seed, *names)[0]


def uniform_pair(seed: int, *names: int) -> tuple[float, float]:
    """Two independent numbers in (0, 1)."""
    packed = pack(f"<{len(names) + 1}q", seed & 0x7FFFFFFFFFFFFFFF, *names)
    a, b = unpack("<QQ", blake2b(packed, digest_size=16).digest())
    return (a + 0.5) / 2.0**64, (b + 0.5) / 2.0**64


def gaussian(seed: int, *names: int) -> float:
    """A standard normal number (Box and Muller)."""
    a, b = uniform_pair(seed, *names)
    return math.sqrt(-2.0 * math.log(a)) * math.cos(2.0 * math.pi * b)


def exponential(mean: float, seed: int, *names: int) -> float:
    """An exponential number with this mean."""
    return -mean * math.log(uniform(seed, *names))
