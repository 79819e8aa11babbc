"""What lies in a folder that a new run was to have, and what to type instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.config import ConfigError, from_toml
from workbench.protocol.records import Kind
from workbench.tape.errors import TapeError
from workbench.tape.lock import holder
from workbench.tape.run_folder import RunFolder


def check_free(path: Path) -> None:
    """Refuse a folder that holds something.

    Raises
    ------
    ConfigError
        With what it holds and what to type instead.
    """
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not path.is_dir():
        raise ConfigError(f"{path} exists and is a file; give a new folder, for example --out {free_name(path)}")
    folder = RunFolder(path)
    writer = holder(folder.supervisor_lock) or holder(folder.journal_lock)
    what, instead = (f"a run, which process {writer} writes", "") if writer else _what(folder)
    raise ConfigError(f"{path} already holds {what}; {instead}give a new folder, for example --out {free_name(path)}")


def free_name(path: Path) -> Path:
    """The next name that nothing has, with a number behind it."""
    number = 2
    while path.with_name(f"{path.name}-{number}").exists():
        number += 1
    return path.with_name(f"{path.name}-{number}")


def _what(folder: RunFolder) -> tuple[str, str]:
    """What lies there, and what else than another folder can be typed."""
    if not folder.config.exists() and not folder.journal.exists():
        seeds = sorted(each for each in folder.path.glob("seed-*") if (each / "journal").exists())
        if not seeds:
            return "other files", ""
        told = ", ".join(f"{each.name} {_how_far(RunFolder(each))[0] or 'whole'}" for each in seeds)
        return f"answers of an earlier question ({told})", f"delete them (rm -r {folder.path}) or "
    how_far, answer = _how_far(folder)
    if not how_far:
        return "a run", ""
    again = f"delete it (rm -r {folder.path})" if answer else f"go on with it (workbench resume {folder.path})"
    return f"a run that was {how_far}", f"{again} or "


def _how_far(folder: RunFolder) -> tuple[str, bool]:
    """How far a run came that was cut off, empty for one that ended; and whether it answers a what-if."""
    from workbench.tape.journal import read_journal

    try:
        contents = read_journal(folder.journal)
    except (TapeError, OSError):
        return "", False
    kinds = [record.kind for record in contents.records]
    if not kinds or Kind.RUN_ENDED in kinds:
        return ("", False) if kinds else ("cut off before its first record", bool(contents.header.get("parent")))
    of = _wanted(contents.header)
    return f"cut off after {kinds.count(Kind.MERGED):,}{of} merges", bool(contents.header.get("parent"))


def _wanted(header: Any) -> str:
    try:
        return f" of {from_toml(header['config']).rounds:,}"
    except (ConfigError, KeyError, TypeError):
        return ""
