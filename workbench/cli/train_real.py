"""``workbench train --clock real``: a run of real processes, watched until it is over."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli import live
from workbench.config import RunConfig

if TYPE_CHECKING:
    from workbench.simulate.faults import FaultPlan

WRONG, INTERRUPTED = 2, 130


def train_real(config: RunConfig, out: Path, faults: FaultPlan) -> tuple[int, dict[str, Any]]:
    """Train with real processes; Ctrl-C stops the run in order.

    Returns
    -------
    code : int
        Exit code of the run.
    summary : dict
        What the tape says of it, empty if there is none.
    """
    from workbench.engine.launch import launch

    began = time.monotonic()
    run = launch(config, out, detach=True, faults=faults)
    print(f"{run.path}: `workbench stop {run.path}` ends it", file=sys.stderr, flush=True)
    interrupted = False
    try:
        live.watch(run)
    except KeyboardInterrupt:
        interrupted = True
        print("stopping in order …", file=sys.stderr, flush=True)
    run.stop()
    code, line = run.outcome()
    if line:
        print(f"workbench: {line}", file=sys.stderr)
    if interrupted:
        code = INTERRUPTED
    began_at_all = run.folder.tape.exists()
    return code, _summary(run.path, time.monotonic() - began) if began_at_all and code != WRONG else {}


def _summary(path: Path, wall_s: float) -> dict[str, Any]:
    from workbench.analysis.summary import summary
    from workbench.tape import open_tape

    return {**summary(open_tape(path)), "wall_s": wall_s, "tape": str(path)}
