"""The resume of a run of real processes: ``resume``."""

from __future__ import annotations

from pathlib import Path

import msgspec

from workbench.config import ConfigError
from workbench.engine.launch import Run
from workbench.engine.layout import CONTROL_FILE, OUTCOME_FILE, PLAN_FILE, Plan, write_private
from workbench.engine.placing import check_cores
from workbench.engine.resuming import Wish, save_wish
from workbench.engine.starting import start_supervisor
from workbench.tape.going_on import cut_for, rest_for, resumable
from workbench.tape.lock import held
from workbench.tape.run_folder import RunFolder


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
        Whether planned faults that have not struck are yet to come.

    Raises
    ------
    ConfigError
        It goes on already, or there is nothing to go on from.
    TapeError
        There is no such run.
    """
    found = resumable(run)
    folder = RunFolder(found.folder.path.resolve())
    if held(folder.supervisor_lock):
        raise ConfigError(f"{run} goes on: its supervisor is there; stop it first (workbench stop {run})")
    if found.header.get("clock") != "real":
        raise ConfigError(f"{run} is a run in virtual time: workbench resume {run}")
    check_cores(found.config)
    cut_for(found, snapshot, intact=True)
    rest_for(found, faults)
    for left in (OUTCOME_FILE, CONTROL_FILE):
        (folder.path / left).unlink(missing_ok=True)
    write_private(folder.path / PLAN_FILE, msgspec.json.encode(Plan()))
    save_wish(folder.path, Wish(snapshot, faults))
    resumed = Run(folder, start_supervisor(folder, detach))
    resumed.await_control()
    return resumed
