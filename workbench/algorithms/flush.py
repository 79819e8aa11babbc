"""Denormals count as zero while a kernel runs, whatever the thread was set to before.

XLA sets flush-to-zero in its own threads and numpy does not; bits may not depend on who calls (DESIGN section 2).
The processor's mode is a property of the thread: it is set through C99's floating-point environment before a kernel
and put back after it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
import sys
from functools import cache
from types import TracebackType

import numpy as np

_CONTROL: dict[tuple[str, str], tuple[int, int]] = {
    ("linux", "x86_64"): (28, 0x8040),  # MXCSR: flush-to-zero, denormals-are-zero
    ("linux", "aarch64"): (0, 1 << 24),  # FPCR: FZ
    ("darwin", "x86_64"): (4, 0x8040),
    ("darwin", "arm64"): (8, 1 << 24),
}
"""Byte offset of the control word in ``fenv_t`` and its bits, by system and machine."""


class flush_to_zero:
    """Context in which denormal inputs and results of this thread's arithmetic are zero.

    Examples
    --------
    >>> import numpy as np
    >>> with flush_to_zero():
    ...     product = np.full(1, 1e-30, np.float32) * np.float32(1e-10)
    >>> bool(product[0] == 0) or flush_mode() == "none"
    True
    """

    def __enter__(self) -> None:
        library, (offset, bits) = _library(), _control()
        self._before = ctypes.create_string_buffer(64)
        if library is None:
            return
        library.fegetenv(self._before)
        changed = ctypes.create_string_buffer(self._before.raw, 64)
        word = ctypes.c_uint32.from_buffer(changed, offset)
        word.value |= bits
        library.fesetenv(changed)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        library = _library()
        if library is not None:
            library.fesetenv(self._before)


@cache
def flush_mode() -> str:
    """``ftz`` where `flush_to_zero` works on this machine (tried once), else ``none``; part of a run's fingerprint."""
    with flush_to_zero():
        product = np.full(4, 1e-30, np.float32) * np.float32(1e-10)
        sums = np.full(4, 1e-40, np.float32) + np.float32(1e-40)
        flushed = not product.view(np.uint32).any() and not sums.view(np.uint32).any()
    return "ftz" if flushed else "none"


def _control() -> tuple[int, int]:
    return _CONTROL.get((sys.platform, platform.machine()), (0, 0))


@cache
def _library() -> ctypes.CDLL | None:
    if _control() == (0, 0):
        return None
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    return library if hasattr(library, "fesetenv") else None
