"""``workbench train --clock real``: a run of real processes, watched until it is over."""

from __future__ import annotations

import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli import live
from workbench.config import RunConfig

if TYPE_CHECKING:
    from workbench.engine.launch import Run
    from workbench.protocol.faults import FaultPlan

WRONG, INTERRUPTED = 2, 130


def train_real(config: RunConfig, out: Path, faults: FaultPlan) -> tuple[int, dict[str, Any]]:
    """Train with real processes; returns as `see_through`."""
    from workbench.engine.launch import launch

    return see_through(launch(config, out, detach=True, faults=faults))


def _load() -> None:
    """Load what the summary of a run needs."""
    import workbench.analysis.reports
    import workbench.analysis.summary
    import workbench.cli.pages.overview
    import workbench.tape  # noqa: F401


def _end(run: Run) -> None:
    """Stop a run and wait for its end; whoever presses Ctrl-C meanwhile calls it away before it listens."""
    while True:
        try:
            run.stop()
            return
        except KeyboardInterrupt:
            run.give_up()


def see_through(run: Run, first: Callable[[], None] = lambda: None) -> tuple[int, dict[str, Any]]:
    """Watch a run to its end, after ``first``; Ctrl-C stops it in order.

    Returns
    -------
    code : int
        Exit code of the run.
    more : dict
        What the tape does not say of it (``digest`` of the weights, ``wall_s``), empty if there is no tape.
    """
    from workbench.engine.weights import newest_digest

    began = time.monotonic()
    print(f"{run.path}: `workbench stop {shlex.quote(str(run.path))}` ends it", file=sys.stderr, flush=True)
    interrupted = False
    try:
        first()
        live.watch(run)
    except KeyboardInterrupt:
        interrupted = True
        print("stopping in order …", file=sys.stderr, flush=True)
    loading = threading.Thread(target=_load, daemon=True)  # while the run ends, and it has nothing to wait for
    loading.start()
    _end(run)
    loading.join()
    code, line = run.outcome()
    if line:
        print(f"workbench: {line}", file=sys.stderr)
    if interrupted:
        code = INTERRUPTED
    if code == WRONG and not run.folder.journal.exists():
        shutil.rmtree(run.path)  # a request that cannot work leaves nothing; the line above says why
    if code == WRONG or not run.folder.tape.exists() or not run.folder.slots.exists():
        return code, {}
    return code, {"digest": f"{newest_digest(run.path):016x}", "wall_s": time.monotonic() - began}
