"""The recorder's process: lays the journal onto the tape about once a second, and closes the tape at the end."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from workbench.engine.links import Link
from workbench.tape.errors import StorageFull, TapeError
from workbench.tape.lock import held
from workbench.tape.run_folder import RunFolder

WRITER_LIMIT_S = 10.0
ORPHAN_LIMIT_S = 8.0
CLOSE_TRIES_S = 5.0


def main(link: Link, arguments: dict[str, Any]) -> int:
    """Follow the journal of ``arguments["run"]`` until told to close, or until the supervisor is gone."""
    from workbench.tape.recorder import Recorder

    folder = RunFolder(Path(arguments["run"]))
    try:
        recorder = Recorder(folder)
    except TapeError as error:
        link.send({"failed": str(error)})
        return 3
    link.send({"up": True})
    began = time.monotonic()
    while True:
        message = link.receive(recorder.interval_s(time.monotonic() - began))
        if link.closed or (message is not None and "close" in message):
            break
        try:
            recorder.drain()
        except StorageFull as error:
            link.send({"storage_full": str(error)})
        except TapeError as error:
            link.send({"failed": str(error)})
            recorder.release()
            return 3
    return close(link, recorder, folder)


def close(link: Link, recorder: Any, folder: RunFolder) -> int:
    """Lay the rest onto the tape once nobody writes the journal any more, and close it."""
    if link.closed:
        guard = threading.Timer(ORPHAN_LIMIT_S, os._exit, (3,))
        guard.daemon = True
        guard.start()
    until = time.monotonic() + WRITER_LIMIT_S
    while held(folder.journal_lock) and time.monotonic() < until:
        time.sleep(0.02)
    try:
        recorder.close()
    except TapeError as error:
        link.send({"failed": str(error)})
        print(f"recorder: {error}", flush=True)
        return 3
    link.send({"recorded": recorder.events})
    return 0
