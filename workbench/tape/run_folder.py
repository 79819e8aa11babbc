"""The run folder: ``config.toml``, ``journal``, ``tape/``, ``snapshots/``, ``logs/``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from workbench.config import ConfigError
from workbench.tape.errors import FULL, TapeError, no_room
from workbench.tape.lock import held


@dataclass(frozen=True)
class RunFolder:
    """Paths of one run.

    Attributes
    ----------
    path : Path
        The folder itself.
    """

    path: Path

    @property
    def config(self) -> Path:
        """The run's configuration, as TOML."""
        return self.path / "config.toml"

    @property
    def journal(self) -> Path:
        """The append-only journal."""
        return self.path / "journal"

    @property
    def tape(self) -> Path:
        """The tape's repository."""
        return self.path / "tape"

    @property
    def slots(self) -> Path:
        """The committed fragments."""
        return self.path / "slots"

    @property
    def tape_lock(self) -> Path:
        """Lock of the tape's one writer."""
        return self.path / "tape.lock"

    @property
    def journal_lock(self) -> Path:
        """Lock of the journal's one writer."""
        return self.path / "journal.lock"

    @property
    def supervisor_lock(self) -> Path:
        """Lock of the supervisor of a run of real processes."""
        return self.path / "supervisor.lock"

    @property
    def snapshots(self) -> Path:
        """Snapshots of the run."""
        return self.path / "snapshots"

    @property
    def logs(self) -> Path:
        """Text logs of the processes."""
        return self.path / "logs"


def being_written(path: str | Path) -> bool:
    """Whether a process holds the journal of the run in a folder; False for anything that is no run folder."""
    return held(RunFolder(Path(path)).journal_lock)


def create_run_folder(path: str | Path, config_toml: str) -> RunFolder:
    """Make the folder of a new run (0700, its files 0600).

    An empty folder that exists is taken.

    Raises
    ------
    ConfigError
        When the folder holds a run or anything else, or cannot be made.
    StorageFull
        When there is no room for it.
    """
    folder = RunFolder(Path(path))
    try:
        folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(folder.path.iterdir()):
            from workbench.tape.taken import check_free

            check_free(folder.path)
        folder.snapshots.mkdir(mode=0o700)
        folder.logs.mkdir(mode=0o700)
        with open(os.open(folder.config, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(config_toml)
    except OSError as error:
        if error.errno in FULL:
            raise no_room(f"a run in {folder.path}") from error
        raise ConfigError(
            f"{folder.path} cannot be made a run folder: {error.strerror}; give another with --out"
        ) from error
    return folder


def open_run_folder(path: str | Path) -> RunFolder:
    """Return the paths of an existing run.

    Raises
    ------
    TapeError
        When the folder is missing or holds no run.
    """
    folder = RunFolder(Path(path))
    if not folder.path.is_dir():
        raise TapeError(f"{folder.path} is no run folder: there is no such folder")
    if not folder.journal.exists() and not folder.tape.exists():
        raise TapeError(f"{folder.path} is no run folder: it holds neither journal nor tape/")
    return folder
