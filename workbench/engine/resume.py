"""The resume of a run of real processes: ``resume``."""

from __future__ import annotations

from pathlib import Path

import msgspec

from workbench.config import ConfigError
from workbench.engine.launch import Run, tell
from workbench.engine.layout import CONTROL_FILE, OUTCOME_FILE, PLAN_FILE, Plan, write_private
from workbench.engine.placing import check_cores
from workbench.engine.resuming import Wish, save_wish
from workbench.engine.starting import start_supervisor
from workbench.tape.config_file import file_difference
from workbench.tape.going_on import cut_for, rest_for, resumable, set_tape_aside
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
        It goes on already, or there is nothing to go on from.
    TapeError
        There is no such run.
    """
    folder = open_run_folder(run)
    try:
        alone = FileLock(folder.path / "resume.lock", f"{run} is about to go on: its folder")
    except OSError as error:
        raise ConfigError(f"{folder.path} cannot be written: {error.strerror}; a resume needs to") from error
    with alone:
        resumed = _begin(run, Wish(snapshot, faults), detach)
        try:
            resumed.await_control()
        except BaseException:
            resumed.give_up()
            raise
    return resumed


def _begin(run: str | Path, wish: Wish, detach: bool) -> Run:
    """Look at the run, put what its supervisor reads in place, start it."""
    found = resumable(run)
    folder = RunFolder(found.folder.path.resolve())
    if held(folder.supervisor_lock):
        raise ConfigError(f"{run} goes on: its supervisor is there; stop it first (workbench stop {run})")
    if found.header.get("clock") != "real":
        raise ConfigError(f"{run} is a run in virtual time: workbench resume {run}")
    check_cores(found.config)
    cut_for(found, wish.snapshot, intact=True)
    rest_for(found, wish.faults)
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
