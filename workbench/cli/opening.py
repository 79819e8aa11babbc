"""Open the tape that a verb tells of, or say in one line why there is none and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr

    from workbench.tape import TapeError


def opened(run: Path) -> xr.DataTree:
    """Return the tape of a run that has recorded something.

    Raises
    ------
    TapeError
        There is none, or the run is still starting, or it ended before it began.
    """
    from workbench.tape import RunFolder, TapeError, open_tape
    from workbench.tape.beginnings import nothing_recorded

    try:
        tape = open_tape(run)
    except TapeError as error:
        raise why_without_tape(run, error) from error
    if "events" in tape.children and not tape["events"].sizes["event"] and not tape.attrs["closed"]:
        raise why_without_tape(run, nothing_recorded(RunFolder(run)), begun=False)
    return tape


def why_without_tape(run: Path, error: TapeError, begun: bool | None = None) -> TapeError:
    """Return the error with what the supervisor of a run said last, if the run ended before it had begun."""
    from workbench.engine.layout import read_outcome
    from workbench.tape import RunFolder, TapeError
    from workbench.tape.beginnings import has_begun

    ended = read_outcome(run)
    if ended is None or (has_begun(RunFolder(run)) if begun is None else begun):
        return error
    code, line = ended
    return TapeError(f"{run} holds no tape: the run ended before it began, with exit code {code}: {line or 'no word'}")
