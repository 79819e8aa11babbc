"""How kernels are compiled: one canonical machine form per rule, the same for every driver (DESIGN section 2).

No fast-math and no BLAS: elementwise IEEE operations in a written order, so the bits depend neither on the vector
width nor on the number of threads.  Compiled code is cached beside the source, or in the user's cache folder where
that cannot be written; where neither can, it is compiled anew in each process.  ``NUMBA_CACHE_DIR`` overrides.  A
kernel's cache is renewed when its own file changes, so helpers that it calls belong into the same file; exceptions are
`vector` and `workbench.algorithms.vector_writer`: after a change of those clear the caches (``__pycache__``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function on first use, without the interpreter lock."""
    try:
        return njit(cache=True, nogil=True, error_model="numpy")(function)  # type: ignore[no-any-return]
    except RuntimeError:  # numba found no place for the cache
        return njit(nogil=True, error_model="numpy")(function)  # type: ignore[no-any-return]


@intrinsic  # type: ignore[arg-type]
def _pointer(typing_context: Any, address: Any) -> Any:
    """Address [bytes] as a pointer to float32."""
    signature = types.CPointer(types.float32)(types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return signature, generate


@njit(inline="always")
def vector(address: int, start: int, count: int) -> Any:
    """Elements ``start`` .. ``start + count`` of the float32 vector at ``address``; for use in kernels.

    Addresses let one compiled kernel serve any number of learners, writable and read-only arrays alike.
    """
    return carray(_pointer(address + 4 * start), (count,))  # type: ignore[call-arg]


_PAGE, _LINE = 4096, 64
_SHIFT = 5 * _LINE
_rows_made = itertools.count()


def aligned(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Zeros whose rows (last axis) begin at multiples of 64 bytes, and each at another place within its page.

    Vectors that cross cache lines load slower; and of vectors at one place within their pages a cache of 8 ways holds
    8, so that merging 8 learners would drive itself out of it (a sixth slower).
    """
    size = np.dtype(dtype).itemsize
    row = -(-shape[-1] * size // _LINE) * _LINE
    if row >= _PAGE:
        row += (_SHIFT - row) % _PAGE
    nbytes = math.prod(shape[:-1]) * row
    raw = np.zeros(nbytes + _PAGE, np.uint8)
    start = (_SHIFT * next(_rows_made) - raw.ctypes.data) % _PAGE
    rows = raw[start : start + nbytes].view(dtype).reshape(*shape[:-1], row // size)
    return rows[..., : shape[-1]]


def addresses(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Addresses of contiguous float32 vectors, int64 (vector,); the caller keeps the arrays alive.

    Raises
    ------
    ValueError
        If an array is not a contiguous float32 vector.
    """
    for array in arrays:
        if array.dtype != np.float32 or array.ndim != 1 or not array.flags.c_contiguous:
            raise ValueError(
                f"an array of shape {array.shape} and type {array.dtype} came; expected a contiguous float32 vector "
                "(numpy.ascontiguousarray(x, numpy.float32).reshape(-1))"
            )
    return np.array([array.ctypes.data for array in arrays], np.int64)
