"""The control socket of a run: whoever reads its token (0600) may look, kill, stop and set."""

from __future__ import annotations

import hmac
import math
import os
import secrets
import socket
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import msgspec

from workbench.config import ConfigError
from workbench.config.keys import INT_MAX, shown
from workbench.engine.layout import CONTROL_FILE, ControlAddress, write_private
from workbench.engine.links import Link
from workbench.engine.runtime_folder import process_started

REQUEST_BYTES_MAX = 1 << 20
TEXT_MAX = 1000
"""Longest text in a request; some of them come to stand on the tape."""
CLIENTS_MAX = 32
ANSWER_LIMIT_S = 10.0


class ControlServer:
    """Listens in the runtime folder; its address and token lie in the run folder.

    Parameters
    ----------
    run, runtime : Path
    """

    def __init__(self, run: Path, runtime: Path) -> None:
        self.run = run
        self.token = secrets.token_hex(16)
        path = runtime / "supervisor"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        os.chmod(path, 0o600)
        self.listener.listen(8)
        self.listener.setblocking(False)
        self.clients: list[Link] = []
        pid = os.getpid()
        address = ControlAddress(str(path), self.token, pid, process_started(pid), str(runtime))
        write_private(run / CONTROL_FILE, msgspec.json.encode(address))

    def accept(self) -> Link | None:
        """A client that has come, None if none has or there are too many."""
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return None
        if len(self.clients) >= CLIENTS_MAX:
            sock.close()
            return None
        client = Link(sock, REQUEST_BYTES_MAX)
        self.clients.append(client)
        return client

    def requests(self, client: Link) -> list[dict[str, Any]]:
        """Requests of a client that knows the token; one that does not is cut off."""
        found = []
        for request in client.read():
            token = request.pop("token", "")
            if not isinstance(token, str) or not hmac.compare_digest(token.encode(), self.token.encode()):
                client.send({"error": "the control token does not fit this run"})
                client.close()
                break
            found.append(request)
        if client.closed and client in self.clients:
            self.clients.remove(client)
        return found

    def close(self) -> None:
        """Take the address away."""
        for client in self.clients:
            client.close()
        self.listener.close()
        (self.run / CONTROL_FILE).unlink(missing_ok=True)


def address_of(run: Path) -> ControlAddress:
    """How to reach the supervisor of a run that goes on.

    Raises
    ------
    ConfigError
        The run does not go on.
    """
    path = run / CONTROL_FILE
    try:
        address = msgspec.json.decode(path.read_bytes(), type=ControlAddress)
    except FileNotFoundError as error:
        raise ConfigError(f"{run} is not running: there is no {CONTROL_FILE} in it") from error
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    if process_started(address.pid) != address.started:
        raise ConfigError(f"{run} is not running: its supervisor, process {address.pid}, is gone")
    return address


def sendable(value: Any, name: str = "request") -> Any:
    """A request in what messages carry: numbers of numpy as Python's.

    Raises
    ------
    ConfigError
        It holds, under ``name``, what no message can carry or no run could do anything with.
    """
    if isinstance(value, dict):
        return {sendable(key, "a key"): sendable(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [sendable(inner, name) for inner in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, name)
    if isinstance(value, Integral):
        if abs(int(value)) <= INT_MAX:
            return int(value)
        wrong, allowed = "is out of range", f"whole numbers up to {INT_MAX}"
    elif isinstance(value, Real):
        if math.isfinite(float(value)):
            return float(value)
        wrong, allowed = "is out of range", "finite numbers"
    else:
        wrong, allowed = f"is of type {type(value).__name__}", "numbers, texts, true, false and none"
    raise ConfigError(f"{name} = {shown(value)} {wrong}; allowed: {allowed}")


def _text(text: str, name: str) -> str:
    if len(text) > TEXT_MAX:
        raise ConfigError(f"{name} = {shown(text)} is too long; allowed: up to {TEXT_MAX} characters")
    if any("\ud800" <= one <= "\udfff" for one in text):
        raise ConfigError(f"{name} = {shown(text)} is no text; allowed: what can be written in UTF-8")
    return text


def ask(run: Path, request: dict[str, Any], timeout_s: float = ANSWER_LIMIT_S) -> dict[str, Any]:
    """Ask the supervisor of a run; returns its answer.

    Raises
    ------
    ConfigError
        The run does not go on, the request holds what cannot be sent, or the supervisor refuses it.
    """
    address = address_of(run)
    request = sendable(request)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(address.socket)
    except OSError as error:
        sock.close()
        raise ConfigError(f"{run} does not answer at {address.socket}: {error.strerror}") from error
    link = Link(sock)
    try:
        link.send({**request, "token": address.token})
        answer = link.receive(timeout_s)
    finally:
        link.close()
    if answer is None:
        raise ConfigError(f"{run} gave no answer to {request.get('verb')!r} within {timeout_s:g} s")
    if "error" in answer:
        raise ConfigError(answer["error"])
    return answer
