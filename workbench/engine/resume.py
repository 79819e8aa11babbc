"""The resume of a run of real processes: ``resume``."""

from __future__ import annotations

from pathlib import Path

import msgspec

from workbench.config import ConfigError
from workbench.engine.launch import Run, tell
from workbench.engine.layout import CONTROL_FILE, OUTCOME_FILE, PLAN_FILE, Plan, write_private
from workbench.engine.resuming import Wish, find, save_wish
from workbench.engine.starting import start_supervisor
from workbench.tape.config_file import file_difference
from workbench.tape.going_on import Resumable, set_tape_aside
from workbench.tape.lock import FileLock, held
from workbench.tape.run_folder import RunFolder, open_run_folder


def resume(run: str | Path, snapshot: int | None = None, detach: bool = False, faults: bool = True) -> Run:
    """Go on with a run of real processes that has ended, or was lost, before its last merge.

    Nothing that was merged is lost where the run's committed fragments are whole; else, or with ``snapshot``,
    everything goes back to a snapshot.  The journal and the tape go on, and so does the plan of faults: its times are
    those of the run's own clock, which stands still while nothing runs.

    Parameters
    ----------
    run : path
        Its folder.
    snapshot : int, optional
        Go back to this one.
    detach : bool
        As in `launch`.
    faults : bool
        Whether planned faults that have not struck are yet to come, and those that last act on.

    Raises
    ------
    ConfigError
        It goes on already, or cannot: its folder is as it was.
    TapeError
        There is no such run, or its journal cannot be read.
    """
    folder, wish = open_run_folder(run), Wish(snapshot, faults)
    seen, (found, _) = _state_of(folder), find(folder.path, wish)
    try:
        alone = FileLock(folder.path / "resume.lock", f"{run} is about to go on: its folder")
    except OSError as error:
        raise ConfigError(f"{folder.path} cannot be written: {error.strerror}; a resume needs to") from error
    with alone:
        if held(folder.supervisor_lock):
            raise ConfigError(f"{run} goes on: its supervisor is there; stop it first (workbench stop {run})")
        if _state_of(folder) != seen:
            found, _ = find(folder.path, wish)
        resumed = _begin(found, wish, detach)
        try:
            resumed.await_control()
        except BaseException:
            resumed.give_up()
            raise
    return resumed


def _state_of(folder: RunFolder) -> tuple[int, int]:
    """Changes with whatever somebody else writes into the journal."""
    if not folder.journal.exists():
        return 0, 0
    there = folder.journal.stat()
    return there.st_size, there.st_mtime_ns


def _begin(found: Resumable, wish: Wish, detach: bool) -> Run:
    """Put what the supervisor of a run that can go on reads in its place; start it."""
    folder = RunFolder(found.folder.path.resolve())
    tell([set_tape_aside(found), _put_config_back(folder, found.header["config"])])
    for left in (OUTCOME_FILE, CONTROL_FILE):
        (folder.path / left).unlink(missing_ok=True)
    write_private(folder.path / PLAN_FILE, msgspec.json.encode(Plan()))
    save_wish(folder.path, wish)
    return Run(folder, start_supervisor(folder, detach))


def _put_config_back(folder: RunFolder, recorded: str) -> str:
    """The configuration of the tape counts: the file is made to hold it again; a line if it did not."""
    line = file_difference(folder, recorded)
    if line is not None:
        write_private(folder.config, recorded.encode())
    return line or ""
