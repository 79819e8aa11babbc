"""Where an export goes: written beside its name, renamed when whole, nothing replaced unasked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType

from workbench.config import ConfigError
from workbench.tape.errors import FULL, is_full, no_room


class Target:
    """A file or a folder to be written.

    Used as a context manager it gives the path to write to, and gives what was written its name at the end; after an
    error nothing is left.

    Parameters
    ----------
    path : Path
    folder : bool
        Whether a folder is written; one of CSV files alone may be replaced.
    force : bool
        Whether something of that name may be replaced.

    Raises
    ------
    ConfigError
        The name is taken, or cannot be one.
    StorageFull
        On entering and leaving: there is no room for it.
    """

    def __init__(self, path: Path, *, folder: bool, force: bool) -> None:
        self.path, self._folder, self._force = path, folder, force
        if not str(path).strip() or "\0" in str(path) or path.name in ("", ".."):
            raise ConfigError(f"--out {str(path)!r} is no name; type --out NAME, for example --out trace.json")
        self._partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            self._check()
            self._partial.lstat()
        except FileNotFoundError:
            pass  # the name is one that a file may have
        except OSError as error:
            raise ConfigError(f"--out {str(path)[:80]}: {error.strerror}; type another name") from error

    def _check(self) -> None:
        path = self.path
        if os.path.lexists(path):
            self._check_taken()
        parent = path.resolve().parent
        if not parent.is_dir():
            raise ConfigError(f"--out {path}: the folder {parent} does not exist; make it first (mkdir -p {parent})")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise ConfigError(f"--out {path}: the folder {parent} cannot be written; type a name in another folder")

    def _check_taken(self) -> None:
        path = self.path
        if path.is_dir() and not self._folder:
            raise ConfigError(f"--out {path}: this is a folder; this format is one file, type a name in it")
        if self._folder and not path.is_dir():
            raise ConfigError(f"--out {path}: this is a file; this format is a folder of files, type another name")
        if not (path.is_dir() or path.is_file()) or path.is_symlink():
            raise ConfigError(f"--out {path} is no regular file, and is never replaced; type another name")
        if not self._force:
            raise ConfigError(f"--out {path} exists; type --force to replace it, or another name")
        if self._folder:
            others = [each.name for each in path.iterdir() if each.suffix != ".csv" or not each.is_file()]
            if others:
                raise ConfigError(
                    f"--out {path} holds {others[0]}, which no export wrote; allowed: a folder of CSV files alone"
                )

    def __enter__(self) -> Path:
        try:
            self._remove(self._partial)
            self._begin()
        except OSError as error:  # a place that takes nothing whatever its mode says, such as /proc
            if error.errno in FULL:
                raise no_room(self.path, "nothing of it is left") from error
            parent = self.path.resolve().parent
            raise ConfigError(
                f"--out {self.path}: nothing can be written to the folder {parent} ({error.strerror}); type a name in "
                "another folder"
            ) from error
        return self._partial

    def _begin(self) -> None:
        """Make what will be written; a file is only tried, since its writer makes it."""
        if self._folder:
            self._partial.mkdir(mode=0o700)
        else:
            self._partial.touch(mode=0o600)
            self._partial.unlink()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._name_it()
        finally:
            self._remove(self._partial)
        if is_full(error):
            raise no_room(self.path, "what was begun is removed") from error

    def _name_it(self) -> None:
        if os.path.lexists(self.path):
            self._check_taken()  # it may have appeared, or changed, in the meantime
        if self._folder and self.path.is_dir():
            self._remove(self.path)
        os.replace(self._partial, self.path)

    @staticmethod
    def _remove(path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
