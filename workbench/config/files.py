"""Small text files that a user names: only regular files, bounded in size, errors in one line."""

from __future__ import annotations

from pathlib import Path

from workbench.config.validate import ConfigError

TEXT_BYTES_MAX = 64 << 20
"""Largest file that is read whole [bytes]."""


def read_text(path: str | Path, what: str) -> str:
    """Text of a regular file.

    Parameters
    ----------
    path : path
    what : str
        What the file is, for the error.

    Raises
    ------
    ConfigError
        No such file, a folder, device or pipe, too large, or not UTF-8.
    """
    file = Path(path)
    try:
        if file.exists() and not file.is_file():
            raise ConfigError(f"{what} {_short(path)} cannot be read: it is no regular file; allowed: a text file")
        size = file.stat().st_size
        if size > TEXT_BYTES_MAX:
            raise ConfigError(f"{what} {_short(path)} has {size} bytes; allowed: up to {TEXT_BYTES_MAX}")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{what} {_short(path)} cannot be read: {reason}") from error


def _short(path: str | Path) -> str:
    text = repr(str(path))
    return text if len(text) <= 120 else f"{text[:100]}… ({len(text)} characters)"
