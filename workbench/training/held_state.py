"""A learner's state as it was at a boundary: held without a copy, laid into bytes by whoever has the time, read back.

The bytes begin with the length of a header (8 bytes, little-endian) and the header in msgpack, which says what follows:
parameters by fragment, moments, and, for a snapshot, the bases of folds and codecs and the captured copies.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec
import numpy as np

from workbench.algorithms.digest import digest
from workbench.algorithms.fragments import Fragmentation
from workbench.models.functional import Parameters
from workbench.training.flat import flatten

LENGTH_BYTES = 8
HEADER_BYTES_MAX = 16 << 20
DTYPES = ("float32", "int32", "uint32", "bfloat16", "float16", "int64", "bool")


class Header(msgspec.Struct, frozen=True):
    """What the bytes hold, in this order.

    Attributes
    ----------
    sizes : list of int
        Parameters of each fragment, float32.
    moments : list of (shape, dtype)
    bases : list of int
        Fragments whose base is there, float32.
    captured : list of (fragment, own step)
        Captured copies, float32.
    """

    sizes: list[int]
    moments: list[tuple[list[int], str]]
    bases: list[int] = []
    captured: list[tuple[int, int]] = []

    @property
    def shapes(self) -> list[tuple[tuple[int, ...], str]]:
        """Shape and type of every array that follows."""
        flat = [*self.sizes, *(self.sizes[p] for p in self.bases), *(self.sizes[p] for p, _ in self.captured)]
        count = len(self.sizes)
        first = [((size,), "float32") for size in flat[:count]]
        moments = [(tuple(shape), dtype) for shape, dtype in self.moments]
        return [*first, *moments, *(((size,), "float32") for size in flat[count:])]


class StateArrays(NamedTuple):
    """A learner's state in arrays.

    Attributes
    ----------
    parameters : list of arrays (size,), float32
        By fragment.
    moments : list of arrays
        Leaves of the inner optimiser's state.
    bases : dict of fragment to array (size,), float32
    captured : dict of (fragment, own step) to array (size,), float32
    """

    parameters: list[np.ndarray]
    moments: list[np.ndarray]
    bases: dict[int, np.ndarray]
    captured: dict[tuple[int, int], np.ndarray]

    @property
    def header(self) -> Header:
        """What `to_bytes` puts first."""
        return Header(
            [flat.size for flat in self.parameters],
            [(list(leaf.shape), str(leaf.dtype)) for leaf in self.moments],
            sorted(self.bases),
            sorted(self.captured),
        )

    @property
    def arrays(self) -> list[np.ndarray]:
        """All arrays in the order of the header."""
        bases = [self.bases[p] for p in sorted(self.bases)]
        return [*self.parameters, *self.moments, *bases, *(self.captured[key] for key in sorted(self.captured))]

    def to_bytes(self) -> np.ndarray:
        """The state as uint8 (nbytes,)."""
        header = msgspec.msgpack.encode(self.header)
        arrays = self.arrays
        out = np.empty(LENGTH_BYTES + len(header) + sum(array.nbytes for array in arrays), np.uint8)
        out[:LENGTH_BYTES] = np.frombuffer(len(header).to_bytes(LENGTH_BYTES, "little"), np.uint8)
        at = LENGTH_BYTES + len(header)
        out[LENGTH_BYTES:at] = np.frombuffer(header, np.uint8)
        for array in arrays:
            out[at : at + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            at += array.nbytes
        return out


def from_bytes(data: np.ndarray) -> StateArrays:
    """Read a state, uint8 (nbytes,); nothing is allocated for what is only claimed.

    Raises
    ------
    ValueError
        The bytes are no state.
    """
    length = int.from_bytes(data[:LENGTH_BYTES].tobytes(), "little")
    at = LENGTH_BYTES + length
    if data.nbytes < LENGTH_BYTES or length > min(HEADER_BYTES_MAX, data.nbytes - LENGTH_BYTES):
        raise ValueError(f"{data.nbytes} bytes are no state of a learner: a header of {length} bytes does not fit")
    try:
        header = msgspec.msgpack.decode(data[LENGTH_BYTES:at].tobytes(), type=Header)
        shapes = header.shapes
    except (msgspec.MsgspecError, IndexError, TypeError) as error:
        raise ValueError(f"{data.nbytes} bytes are no state of a learner: {error}") from error
    arrays = _cut(data, at, shapes)
    count, moments, bases = len(header.sizes), len(header.moments), len(header.bases)
    rest = arrays[count + moments :]
    return StateArrays(
        arrays[:count],
        arrays[count : count + moments],
        dict(zip(header.bases, rest[:bases], strict=True)),
        dict(zip(((p, n) for p, n in header.captured), rest[bases:], strict=True)),
    )


def _cut(data: np.ndarray, at: int, shapes: list[tuple[tuple[int, ...], str]]) -> list[np.ndarray]:
    arrays = []
    for shape, dtype in shapes:
        if dtype not in DTYPES or min(shape, default=0) < 0:
            raise ValueError(f"an array of shape {shape} and type {dtype!r} is none of a learner's state")
        kind = np.dtype(dtype)
        nbytes = math.prod(shape) * kind.itemsize
        if at + nbytes > data.nbytes:
            raise ValueError(f"a state of {data.nbytes} bytes ends within an array of shape {shape}")
        array = np.empty(shape, kind)
        array.reshape(-1).view(np.uint8)[:] = data[at : at + nbytes]
        arrays.append(array)
        at += nbytes
    if at != data.nbytes:
        raise ValueError(f"a state of {data.nbytes} bytes has {data.nbytes - at} bytes too many")
    return arrays


class Held(NamedTuple):
    """References to what a learner was at a boundary: nobody ever writes these arrays.

    Attributes
    ----------
    tensors : dict of arrays
        Parameters by name, on the device.
    moments : list of arrays
        Leaves, on the device.
    bases, captured
        As in `StateArrays`; empty for a peer.
    """

    tensors: Parameters
    moments: list[Any]
    bases: dict[int, np.ndarray]
    captured: dict[tuple[int, int], np.ndarray]

    def arrays(self, fragmentation: Fragmentation) -> StateArrays:
        """The same on the host: any thread may do this."""
        layouts = [fragmentation.layout(p) for p in range(fragmentation.fragments)]
        return StateArrays(
            [flatten(self.tensors, layout) for layout in layouts],
            [np.asarray(leaf) for leaf in self.moments],
            self.bases,
            self.captured,
        )


def state_digest(data: np.ndarray) -> int:
    """xxh3-64 of a state's bytes."""
    return digest(data)
