"""A run's short private folder in memory: its sockets and its blocks, gone with its owner.

Paths of unix sockets may have at most 107 characters, and fragments should never touch a disk; so these files lie in
a folder of their own beside, not below, the run folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

PREFIX = "wb-"
OWNER_FILE = "owner.json"
SOCKET_PATH_MAX = 107
MAKING_LIMIT_S = 60.0
NAME_MAX = 40
"""Characters that names inside the folder may have at most."""


class Owner(msgspec.Struct, frozen=True):
    """Who a folder belongs to; a process number alone may be given again, its start time with it is not."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return self.started >= 0 and process_started(self.pid) == self.started


def process_started(pid: int) -> int:
    """Start time of a process in clock ticks since boot, -1 if there is none or it is only waited for (a zombie).

    The fields of ``/proc/PID/stat`` are counted from behind the last bracket: a process may call itself anything.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return -1
    fields = text.rpartition(")")[2].split()
    return -1 if fields[0] in "ZX" else int(fields[19])


def is_stopped(pid: int) -> bool:
    """Whether a process of this machine is stopped by a signal (or a debugger), whoever sent it (Linux)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] in "Tt"


def roots() -> list[Path]:
    """Folders in which runtime folders may lie, best first: memory, the user's own runtime folder, temporary files."""
    places = ["/dev/shm", os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"]
    seen = dict.fromkeys(Path(place) for place in places if place)
    return [place for place in seen if place.is_dir() and os.access(place, os.W_OK | os.X_OK)]


class RuntimeFolder:
    """One run's folder of sockets and blocks, mode 0700.

    Attributes
    ----------
    path : Path
    owner : Owner
    """

    def __init__(self, path: Path, owner: Owner) -> None:
        self.path = path
        self.owner = owner

    @classmethod
    def create(cls, owner_pid: int | None = None) -> RuntimeFolder:
        """Make a folder for the process ``owner_pid`` (this one by default).

        Raises
        ------
        OSError
            If no place can be written in which socket paths stay short enough.
        """
        pid = os.getpid() if owner_pid is None else owner_pid
        owner = Owner(pid, process_started(pid))
        tried = []
        for root in roots():
            if len(os.fsencode(root)) + 1 + len(PREFIX) + 8 + 1 + NAME_MAX > SOCKET_PATH_MAX:
                tried.append(f"{root} is too long a path")
                continue
            try:
                path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
                _write_private(path / OWNER_FILE, msgspec.json.encode(owner))
            except OSError as error:
                tried.append(f"{root}: {error.strerror}")
                continue
            return cls(path, owner)
        raise OSError(
            f"no folder for sockets: {'; '.join(tried) or 'none can be written'}; set XDG_RUNTIME_DIR to a folder "
            f"that can be written and has a path of less than {SOCKET_PATH_MAX - NAME_MAX - 12} characters"
        )

    @classmethod
    def open(cls, path: Path | str) -> RuntimeFolder:
        """The folder at ``path``, made by somebody else of the same user.

        Raises
        ------
        OSError
            If it is no runtime folder, belongs to another user, or others may enter it.
        """
        path = Path(path)
        found = path.lstat()
        if found.st_uid != os.getuid() or found.st_mode & 0o170077 != 0o040000:
            raise PermissionError(f"{path} is no private folder of user {os.getuid()}; expected one with mode 0700")
        try:
            owner = msgspec.json.decode((path / OWNER_FILE).read_bytes(), type=Owner)
        except msgspec.DecodeError as error:
            raise OSError(f"{path / OWNER_FILE} holds no pid and start of an owner ({error})") from error
        return cls(path, owner)

    def remove(self) -> None:
        """Remove the folder and all in it; what others have mapped stays with them.  Gone already: nothing to do."""
        shutil.rmtree(self.path, ignore_errors=True)

    @staticmethod
    def sweep() -> list[Path]:
        """Remove the folders of this user whose owner is gone; returns which."""
        removed = []
        for path in _candidates():
            if _abandoned(path):
                shutil.rmtree(path, ignore_errors=True)
                removed.append(path)
        return removed


def _abandoned(path: Path) -> bool:
    """Whether a folder's owner is gone; one without an owner's name was left while it was made, if that is long ago."""
    try:
        return not RuntimeFolder.open(path).owner.alive
    except FileNotFoundError:
        with suppress(OSError):
            found = path.lstat()
            private = found.st_uid == os.getuid() and found.st_mode & 0o170077 == 0o040000
            return private and time.time() - found.st_mtime > MAKING_LIMIT_S
    except OSError:  # another user's, or not a folder of ours
        pass
    return False


def _candidates() -> Iterator[Path]:
    for root in roots():
        yield from sorted(root.glob(f"{PREFIX}*"))


def _write_private(path: Path, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
