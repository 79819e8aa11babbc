"""What a supervisor knows of its processes, and the nursery that starts them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.engine.links import LENGTH, Link, pair
from workbench.training.environment import malloc_advice

BACKOFF_FIRST_S = 0.5
BACKOFF_MAX_S = 30.0
FAILED_STARTS_MAX = 5
STEADY_AFTER_S = 10.0
"""A syncer that lived for so long got somewhere, even if nothing could be merged."""

NICE = {"syncer": 0, "learner": 5, "reference": 5, "recorder": 10, "evaluator": 10, "keeper": 10, "prepare": 0}


@dataclass
class Managed:
    """One process that the supervisor keeps alive, through all its starts.

    Attributes
    ----------
    role, label : str
    process : int
        Process number on the tape, -1 for those that it does not know.
    state : str
        ``waiting`` (for its start), ``starting``, ``running``, ``stopped`` (SIGSTOP), ``ended``, ``failed``.
    number, pid : int
        Of the present start; pid is 0 while there is none.
    ready : bool
        A learner has compiled its step, and joins when it is told to.
    line, line_of : str, int
        What a process said when it failed, and which start that was.
    how : str
        How the last process ended: ``exit 0``, ``SIGKILL``.
    failed_starts : int
        Starts in a row that did not get anywhere.
    steady : bool
        The present start got somewhere.
    """

    role: str
    label: str
    process: int = -1
    learner: int = -1
    state: str = "waiting"
    number: int = 0
    pid: int = 0
    ready: bool = False
    failed_starts: int = 0
    steady: bool = False
    backoff_s: float = BACKOFF_FIRST_S
    link: Link | None = None
    line: str = ""
    line_of: int = 0
    how: str = ""
    restart_at: float = field(default=-1.0)
    stops: int = 0

    @property
    def alive(self) -> bool:
        """Whether a process of it is there."""
        return self.pid > 0

    def next_backoff_s(self) -> float:
        """Seconds to wait before the next start; doubles until a start gets somewhere."""
        wait, self.backoff_s = self.backoff_s, min(2 * self.backoff_s, BACKOFF_MAX_S)
        return wait

    def got_somewhere(self) -> None:
        """The present process does what it is there for."""
        self.failed_starts, self.backoff_s, self.steady = 0, BACKOFF_FIRST_S, True
        if self.state == "starting":
            self.state = "running"


class Nursery:
    """The supervisor's end of the nursery; starts it.

    Parameters
    ----------
    logs : Path
        Folder for the text that processes print.
    """

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        log = os.open(logs / "nursery.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "workbench.engine.nursery", str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **malloc_advice()},
            )
        finally:
            os.close(log)
            theirs.close()
        self.sock = ours
        self.link = Link(ours)
        self._ticket = 0
        self._tickets: dict[int, Managed] = {}

    def start(
        self, managed: Managed, arguments: dict[str, Any], environment: dict[str, str], cores: Sequence[int] = ()
    ) -> Link:
        """Have a process forked; its pid comes with a later message, see `heard`."""
        link, theirs = pair()
        self._ticket += 1
        self._tickets[self._ticket] = managed
        request = {
            "start": managed.role,
            "ticket": self._ticket,
            "name": f"wb-{managed.label}",
            "log": str(self.logs / f"{managed.label}.log"),
            "nice": NICE[managed.role],
            "cores": list(cores),
            "environment": environment,
            "arguments": arguments,
        }
        self._send(request, theirs)
        managed.link = link
        managed.state = "starting"
        return link

    def _send(self, request: dict[str, Any], descriptor: socket.socket) -> None:
        """The descriptor travels with the first byte of its request."""
        import msgspec

        data = msgspec.msgpack.encode(request)
        whole = LENGTH.pack(len(data)) + data
        self.sock.setblocking(True)
        try:
            sent = socket.send_fds(self.sock, [whole], [descriptor.fileno()])
            self.sock.sendall(whole[sent:])
        except OSError:
            self.link.close()
        finally:
            descriptor.close()
            if not self.link.closed:
                self.sock.setblocking(False)

    def heard(self, message: dict[str, Any]) -> tuple[str, Managed | None, dict[str, Any]]:
        """What a message of the nursery says: (started | ended | ready, whose process, message)."""
        if "started" in message:
            return "started", self._tickets[message["started"]], message
        if "ended" in message:
            return "ended", self._tickets.pop(message["ended"], None), message
        return "ready", None, message

    def signal(self, managed: Managed, number: signal.Signals) -> bool:
        """Send a signal to a process; the nursery does it, which knows whether that pid is still its child."""
        if not managed.alive:
            return False
        return self.link.send({"signal": int(number), "pid": managed.pid})

    def end(self) -> None:
        """End the nursery, and with it what it has left."""
        self.link.close()
        try:
            self.process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=5.0)
