"""The start of a supervisor, new or for a run that goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from workbench.tape.run_folder import RunFolder


def start_supervisor(folder: RunFolder, detach: bool) -> subprocess.Popen[bytes]:
    """A process of its own session; it finds this very package wherever it lies."""
    package_root = str(Path(__file__).resolve().parents[2])
    paths = [package_root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    log = os.open(folder.logs / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            [
                sys.executable, "-m", "workbench.engine.supervisor", str(folder.path.resolve()),
                *([] if detach else ["--owned"]),
            ],
            stdin=subprocess.DEVNULL if detach else subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))},
            start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(log)
