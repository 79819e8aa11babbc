"""Compiling once for all: processes that need the same program wait for the first to have it in the cache."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.algorithms.digest import digest
from workbench.training.compile_cache import enable_compile_cache
from workbench.training.environment import fingerprint


def cache_folder() -> Path:
    """Folder of compiled programs, of this user alone."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "workbench" / "compiled"


@contextmanager
def compiling(folder: Path, program: Any) -> Iterator[None]:
    """Compile here what ``program`` describes: one process at a time the first time, freely once it is in the cache.

    Parameters
    ----------
    folder : Path
        Of the compile cache; made private.
    program : object
        Its representation tells programs apart.
    """
    folder = enable_compile_cache(folder)
    name = f"program-{digest(repr((program, sorted(fingerprint().items()))).encode()):016x}"
    done = folder / f"{name}.done"
    if done.exists():
        yield
        return
    lock = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists():
            fcntl.flock(lock, fcntl.LOCK_UN)  # the others need not wait for this one
        yield
        done.touch(mode=0o600)
    finally:
        os.close(lock)
