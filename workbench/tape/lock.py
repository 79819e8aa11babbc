"""One writer: a lock that dies with its process and names its holder."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from workbench.tape.errors import FULL, TapeError, no_room


class FileLock:
    """Exclusive `flock` on a small file that holds the owner's process id.

    The kernel drops the lock when the process ends, however it ends, so no stale lock exists.

    Parameters
    ----------
    path : Path
        File of the lock; made with mode 0600, left in place when released.
    what : str
        What is locked, for the error's text.

    Raises
    ------
    TapeError
        When another writer holds it, with that writer's process id.
    StorageFull
        When there is no room for the file.
    """

    def __init__(self, path: Path, what: str) -> None:
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno in FULL:
                raise no_room(path) from error
            raise
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._fd, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._fd)
            raise TapeError(
                f"{what} is being written by process {holder}; one writer at a time, so end that one first"
            ) from error
        with suppress(OSError):  # on a full disk the lock holds all the same
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give the lock back; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> FileLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder(path: Path) -> str:
    """Process id of who holds the lock at ``path``; empty if nobody does."""
    if not held(path):
        return ""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip() or "unknown"
    except OSError:
        return "unknown"


def held(path: Path) -> bool:
    """Whether some process holds the lock at ``path``; a missing or unreadable file counts as free."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
