"""Files that are mapped: all of a file's room is there before it has its name."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np


def reserve(path: Path, nbytes: int, head: np.ndarray, *, durable: bool = False) -> None:
    """Make a private file of zeros behind ``head``; it gets its name when it is whole.

    Parameters
    ----------
    path : Path
    nbytes : int
        Size of the file, all of it reserved at once.
    head : ndarray
        What it begins with.
    durable : bool
        Wait until the disk has it.

    Raises
    ------
    OSError
        There is no room; nothing is left of the file.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.posix_fallocate(fd, 0, nbytes)
        os.pwrite(fd, head.tobytes(), 0)
        if durable:
            os.fsync(fd)
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
