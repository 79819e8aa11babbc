"""The supervisor of a run: starts its processes, sees them end, starts them again, and ends the run in order.

``python -m workbench.engine.supervisor RUN [--owned]``; with ``--owned`` the run ends when stdin does, which is the
case when the process that launched it is gone, however it went.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from workbench.config import ConfigError
from workbench.engine import child
from workbench.engine.control import ControlServer
from workbench.engine.fleet import Fleet
from workbench.engine.layout import OUTCOME_FILE, read_config, read_plan, write_private
from workbench.engine.links import Link
from workbench.engine.requests import Requests
from workbench.engine.runtime_folder import RuntimeFolder
from workbench.engine.timers import Timers
from workbench.tape.errors import FULL, TapeError, no_room
from workbench.tape.lock import FileLock
from workbench.tape.run_folder import RunFolder

DONE, AGAINST, WRONG, LOST = 0, 1, 2, 3
TURN_S = 0.5


def main() -> int:
    """Supervise the run folder that is named on the command line."""
    arguments = [word for word in sys.argv[1:] if word != "--owned"]
    owned = "--owned" in sys.argv[1:]
    run = Path(arguments[0]).resolve()
    child.name_process("wb-supervisor")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        lock = FileLock(RunFolder(run).supervisor_lock, f"the run {run}")
    except (TapeError, OSError) as error:
        print(f"workbench: {error}", file=sys.stderr)
        return WRONG
    code, line = LOST, "the supervisor ended without a word"
    try:
        code, line = Supervisor(run, owned).supervise()
    except (ConfigError, TapeError) as error:
        code, line = WRONG, str(error)
    except OSError as error:
        code, line = LOST, _said(error, run)
    finally:
        write_private(run / OUTCOME_FILE, msgspec.json.encode({"code": code, "line": line}))
        lock.release()
    if line:
        print(line, flush=True)
    return code


def _said(error: OSError, run: Path) -> str:
    """What the operating system refused, and where."""
    if error.errno in FULL:
        return str(no_room(error.filename or run))
    return f"{error.filename or run}: {error.strerror or error}"


class Supervisor:
    """One run, from the sweep of what others have left to the last process.

    Parameters
    ----------
    run : Path
        Folder with ``config.toml`` and, if there are faults, a plan.
    owned : bool
        End the run at the end of stdin.
    """

    def __init__(self, run: Path, owned: bool) -> None:
        self.folder = RunFolder(run)
        self.config = read_config(run)
        self.plan = read_plan(run)
        RuntimeFolder.sweep()
        self.runtime = RuntimeFolder.create()
        self.timers = Timers()
        self.selector = selectors.DefaultSelector()
        try:
            self.control = ControlServer(run, self.runtime.path)
            self.fleet = Fleet(self.folder, self.runtime.path, self.config, self.plan, self.timers, self.watch)
        except BaseException:
            self.runtime.remove()
            raise
        self.requests = Requests(self.fleet)
        self.woken, waker = socket.socketpair()
        waker.setblocking(False)
        self.woken.setblocking(False)
        self._waker = waker
        signal.set_wakeup_fd(waker.fileno())
        signal.signal(signal.SIGTERM, lambda *_: None)
        self.selector.register(self.woken, selectors.EVENT_READ, ("signal", None))
        self.selector.register(self.control.listener, selectors.EVENT_READ, ("listener", None))
        if owned:
            self.selector.register(0, selectors.EVENT_READ, ("owner", None))

    def watch(self, link: Link, what: str, owner: Any) -> None:
        """Have a link looked at whenever something comes."""
        self.selector.register(link.sock, selectors.EVENT_READ, (what, (link, owner)))
        link.on_close = partial(self.selector.unregister, link.sock)

    def supervise(self) -> tuple[int, str]:
        """Until everything has ended; returns exit code and last line."""
        try:
            self.fleet.begin()
            while not self.fleet.over:
                self._turn()
            return self.fleet.ending.outcome()
        finally:
            self.fleet.end()
            self.control.close()
            self.runtime.remove()

    def _turn(self) -> None:
        self.timers.run_due()
        for key, _ in self.selector.select(self.timers.wait_s(TURN_S)):
            what, who = key.data
            if what == "signal":
                self._signalled()
            elif what == "listener":
                client = self.control.accept()
                if client is not None:
                    self.watch(client, "client", None)
            elif what == "owner":
                self._owner(key)
            elif what == "client":
                self._client(who[0])
            else:
                self._link(who[0], what, who[1])
        self.fleet.flush()
        self.fleet.look_after_nursery()

    def _signalled(self) -> None:
        numbers = self.woken.recv(64)
        if signal.SIGTERM in numbers:
            self.fleet.ending.stop("SIGTERM")

    def _owner(self, key: selectors.SelectorKey) -> None:
        if not os.read(0, 4096):
            self.selector.unregister(key.fileobj)
            self.fleet.ending.stop("owner_gone", hurry=True)

    def _client(self, client: Link) -> None:
        for request in self.control.requests(client):
            self.requests.take(request, client)

    def _link(self, link: Link, what: str, owner: Any) -> None:
        for message in link.read():
            self.fleet.heard(what, owner, message, link)


if __name__ == "__main__":
    sys.exit(main())
