"""Files that a text is made of: the standard library's source, or the user's file or folder."""

from __future__ import annotations

import os
import stat
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from workbench.config import ConfigError

LEFT_OUT = frozenset({"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"})
"""Folders of the standard library that are tests, or no part of it."""


@dataclass(frozen=True)
class Found:
    """A readable file that is not empty.

    Attributes
    ----------
    name : str
        Path relative to the source's root, with forward slashes; the same on every machine.
    location : str
        Where to open it.
    size : int
        Bytes.
    """

    name: str
    location: str
    size: int


@dataclass(frozen=True)
class Listing:
    """Files of a source in the order of their names, and one line for everything that was passed over."""

    files: tuple[Found, ...]
    warnings: tuple[str, ...]


def stdlib_files() -> Listing:
    """Python source of the running interpreter's standard library, tests left out.

    Raises
    ------
    ConfigError
        This interpreter has no library files on disk.
    """
    root = Path(sysconfig.get_path("stdlib"))
    files = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in LEFT_OUT and not f.startswith("."))
        for name in names:
            path = Path(folder, name)
            if name.endswith(".py") and not path.is_symlink() and path.stat().st_size > 0:
                files.append(Found(path.relative_to(root).as_posix(), str(path), path.stat().st_size))
    if not files:
        raise ConfigError(
            f"data.source = 'stdlib' found no .py files in {root}; expected the standard library as files; "
            "give a text of your own (--data PATH)"
        )
    return Listing(tuple(sorted(files, key=lambda file: file.name)), ())


def path_files(path: str) -> Listing:
    """Files of the user's text: one file, or all files of a folder and its subfolders.

    Hidden files and folders are passed over, and so is what cannot be read, what is no regular file, what is
    empty, and links that lead out of the folder; each leaves a line in ``warnings``.

    Raises
    ------
    ConfigError
        Nothing there, nothing readable, or nothing in it.
    """
    root = Path(path).expanduser()
    if not root.exists():
        raise ConfigError(
            f"data.path = {path!r} does not exist; expected a file or a folder of text; "
            "give one that does (--data PATH)"
        )
    if not root.is_dir():
        return _single_file(path, root)
    listing = _folder(root)
    if not listing.files:
        found = "; ".join(listing.warnings[:3]) or "no files"
        raise ConfigError(
            f"data.path = {path!r} holds nothing to train on ({found}); expected a folder with readable files that "
            "are not empty; give another (--data PATH)"
        )
    return listing


def _single_file(path: str, root: Path) -> Listing:
    problem = _problem(root, root.resolve().parent)
    if problem:
        raise ConfigError(
            f"data.path = {path!r} {problem}; expected a readable file that is not empty; give another (--data PATH)"
        )
    return Listing((Found(root.name, str(root.resolve()), root.stat().st_size),), ())


def _folder(root: Path) -> Listing:
    resolved = root.resolve()
    files, warnings = [], []
    for folder, folders, names in os.walk(
        resolved, onerror=lambda error: warnings.append(f"{error.filename}: {error.strerror}")
    ):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            location = Path(folder, name)
            relative = location.relative_to(resolved).as_posix()
            problem = "is hidden" if name.startswith(".") else _problem(location, resolved)
            if problem:
                warnings.append(f"{relative} {problem}")
            else:
                files.append(Found(relative, str(location), location.stat().st_size))
    return Listing(tuple(sorted(files, key=lambda file: file.name)), tuple(warnings))


def _problem(location: Path, root: Path) -> str:
    """Why a file cannot be trained on, empty if it can."""
    try:
        if location.is_symlink() and not location.resolve().is_relative_to(root):
            return "is a link that leads out of the folder"
        status = location.stat()
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for its writer
            return "is no regular file"
        if status.st_size == 0:
            return "is empty"
        with open(location, "rb") as file:
            file.read(1)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return ""
