"""Go on with a run that was stopped, or lost, before its last merge.

Nothing that was merged is lost where the committed fragments in the run's
folder are whole: learners begin with them, and with the moments of the newest
snapshot. Else, or with --snapshot, everything goes back to a snapshot: what
came after it stays on the tape, its tokens count as rolled back. The journal
and the tape go on, and replay as one, and so do planned faults (--faults,
--chaos) that have not struck: their times are those of the run's own clock,
which stands still while nothing runs. Runs of real processes and runs in
virtual time alike.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from workbench.cli import options
from workbench.config import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench resume``."""
    options.add_run(parser)
    parser.add_argument("--snapshot", metavar="N", type=int, help="go back to this snapshot")
    parser.add_argument(
        "--no-faults", action="store_true", help="without planned faults that have not struck yet; what lasts is over"
    )
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Go on with the run to its end; returns as ``workbench train`` does."""
    from workbench.cli.train import tell
    from workbench.protocol.plans import rest_line
    from workbench.tape.going_on import rest_for, resumable

    path = Path(arguments.run)
    if arguments.snapshot is not None and arguments.snapshot < 1:
        raise ConfigError(f"--snapshot {arguments.snapshot}; allowed: the number of a snapshot, from 1")
    found, faults = resumable(path), not arguments.no_faults
    _say(rest_line(rest_for(found, faults)) if faults else "")
    if found.header.get("clock") == "real":
        code, more = _real(path, arguments.snapshot, faults)
    else:
        code, more = _virtual(path, found.config.rounds, arguments.snapshot, faults)
    return tell(path, code, more, arguments.json) if more else code


def _say(line: str) -> None:
    if line:
        print(line, file=sys.stderr, flush=True)


def _real(path: Path, snapshot: int | None, faults: bool) -> tuple[int, dict[str, Any]]:
    from workbench.cli.train_real import see_through
    from workbench.engine.resume import resume

    return see_through(resume(path, snapshot, detach=True, faults=faults))


def _virtual(path: Path, rounds: int, snapshot: int | None, faults: bool) -> tuple[int, dict[str, Any]]:
    from workbench.cli.train import virtual_outcome
    from workbench.simulate.resuming import resume_virtual

    return virtual_outcome(
        path, rounds, lambda progress: resume_virtual(path, snapshot, progress, faults=faults, say=_say)
    )
