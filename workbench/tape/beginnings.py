"""Runs of which nothing is recorded yet, or nothing was: told from damaged ones, in one line that says what to do."""

from __future__ import annotations

from workbench.tape.errors import TapeError
from workbench.tape.lock import held
from workbench.tape.run_folder import RunFolder


def is_written(folder: RunFolder) -> bool:
    """Whether processes of the run live: they supervise it, or write its journal or its tape."""
    return any(held(lock) for lock in (folder.supervisor_lock, folder.journal_lock, folder.tape_lock))


def has_begun(folder: RunFolder) -> bool:
    """Whether a run folder holds a tape, or a journal that one could be made of."""
    journal = folder.journal
    return folder.tape.exists() or (journal.exists() and journal.stat().st_size > 0)


def nothing_recorded(folder: RunFolder) -> TapeError:
    """What to say of a run folder in which nothing is recorded."""
    if is_written(folder):
        return TapeError(f"{folder.path} is starting: nothing is recorded yet; ask again in some seconds")
    return TapeError(
        f"{folder.path} holds no tape: its run ended before anything was recorded; train it again "
        f"(workbench train --config {folder.config} --out FOLDER)"
    )
