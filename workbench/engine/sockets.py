"""ZeroMQ sockets of the wire: how they are made, read and watched."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import zmq
from zmq.utils.monitor import recv_monitor_message

from workbench.config import ConfigError
from workbench.engine.frames import FRAME_BYTES_MAX, Buffer
from workbench.engine.runtime_folder import SOCKET_PATH_MAX
from workbench.engine.security import host_and_port
from workbench.engine.transfers import Full, Unreachable

CONTROL_FRAMES_MAX = 1000
BULK_FRAMES_MAX = 8
"""Frames that ZeroMQ holds for one peer and direction; on bulk they may be chunks of megabytes."""
BACKLOG = 128
PORT_TRIES = 64
SOCKET_NAMES = ("control", "bulk")
GONE_EVENTS = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CLOSED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)

Socket = zmq.Socket[Any]


class Part(NamedTuple):
    """One frame as it was read.

    Attributes
    ----------
    identity : bytes
        Of the peer; empty at a DEALER.
    head : buffer
    body : buffer or None
        Second part, None if there is none or it went into the place given for it.
    stored : int
        Bytes that the second part had that went into that place, -1 if none did.
    surplus : bool
        There were more parts than a frame has; they were dropped.
    """

    identity: bytes
    head: Buffer
    body: Buffer | None
    stored: int
    surplus: bool


def endpoints(place: str) -> tuple[str, str]:
    """Addresses of control and bulk at a folder or ``tcp://HOST:PORT`` (bulk is at the next port).

    Raises
    ------
    ConfigError
        If it is neither, or the folder's path is too long for a socket.
    """
    if "://" in place:
        host, port = host_and_port(place)
        return f"tcp://{host}:{port}", f"tcp://{host}:{port + 1}"
    paths = [str(Path(place) / name) for name in SOCKET_NAMES]
    longest = max(len(os.fsencode(path)) for path in paths)
    if longest > SOCKET_PATH_MAX:
        raise ConfigError(f"{place} makes socket paths of {longest} characters; at most {SOCKET_PATH_MAX} work")
    return f"ipc://{paths[0]}", f"ipc://{paths[1]}"


def block_name(identity: bytes) -> str:
    """Name of a learner's block file, the same at both ends, so that no other file can be meant."""
    return f"l-{identity.hex()}"


def nowhere(identity: bytes, head: Buffer) -> None:
    """No memory for second parts (`receive`)."""


def make_context() -> zmq.Context[Any]:
    """A context with one thread for each channel, so that heartbeats do not wait while chunks are enciphered."""
    context: zmq.Context[Any] = zmq.Context(io_threads=2)
    context.max_sockets = 4096
    return context


def make_socket(context: zmq.Context[Any], kind: int, channel: int) -> Socket:
    """A ROUTER or DEALER with bounded queues and frames."""
    socket = context.socket(kind)
    socket.linger = 0
    socket.maxmsgsize = FRAME_BYTES_MAX + 1024
    socket.affinity = 1 << channel
    socket.backlog = BACKLOG
    frames = BULK_FRAMES_MAX if channel else CONTROL_FRAMES_MAX
    socket.sndhwm = frames
    socket.rcvhwm = frames
    socket.handshake_ivl = 10_000
    if kind == zmq.ROUTER:
        socket.router_mandatory = True
    else:
        socket.reconnect_ivl = -1  # a new connection is a new pair of sockets
        socket.connect_timeout = 5_000
    return socket


def bind(socket: Socket, address: str) -> None:
    """Bind, or say in one line why not (`ConfigError`)."""
    try:
        socket.bind(address)
    except zmq.ZMQError as error:
        raise ConfigError(
            f"cannot listen on {address}: {os.strerror(error.errno or 0)}; end what holds it, or choose another address"
        ) from error
    if address.startswith("ipc://"):
        os.chmod(address.removeprefix("ipc://"), 0o600)


def receive(socket: Socket, place: Callable[[bytes, Buffer], memoryview | None]) -> Part | None:
    """Next frame of a socket, None if none waits.

    ``place(identity, head)`` may give memory for a second part, which is then read straight into it; what is longer
    than that memory is cut off, as ``stored`` shows.
    """
    try:
        first = socket.recv(zmq.NOBLOCK, copy=False)
    except zmq.Again:
        return None
    identity, last = b"", first
    if socket.type == zmq.ROUTER:
        identity = first.bytes
        if not first.more:
            return Part(identity, b"", None, -1, False)
        last = socket.recv(copy=False)
    head, body, stored, more = last.buffer, None, -1, last.more
    if more:
        space = place(identity, head)
        if space is not None:
            stored = socket.recv_into(space)
            more = bool(socket.getsockopt(zmq.RCVMORE))
        else:
            second = socket.recv(copy=False)
            body, more = second.buffer, second.more
    surplus = bool(more)
    while more:
        more = socket.recv(copy=False).more
    return Part(identity, head, body, stored, surplus)


class Monitor:
    """Tells that a connection of a socket ended; which one, a ROUTER's owner finds out by asking them all."""

    def __init__(self, socket: Socket, events: int) -> None:
        self._watched = socket
        self.socket: Socket = socket.get_monitor_socket(events)
        self.socket.linger = 0

    def events(self) -> list[int]:
        """Which events came since the last call."""
        return [event for event, _ in self.read()]

    def read(self) -> list[tuple[int, int]]:
        """Events that came since the last call, each with its value (the connection's file descriptor, mostly)."""
        found = []
        while self.socket.poll(0):
            message = recv_monitor_message(self.socket, zmq.NOBLOCK)
            found.append((int(message["event"]), int(message["value"])))
        return found

    def close(self) -> None:
        """Stop watching."""
        self._watched.disable_monitor()
        self.socket.close(0)


def bind_pair(sockets: Sequence[Socket], place: str) -> str:
    """Bind control and bulk at a place, which is returned; port 0 becomes the first of two free ports."""
    if "://" not in place or host_and_port(place)[1]:
        for socket, address in zip(sockets, endpoints(place), strict=True):
            bind(socket, address)
        return place
    host = host_and_port(place)[0]
    for _ in range(PORT_TRIES):
        bind(sockets[0], f"tcp://{host}:0")
        first = sockets[0].getsockopt_string(zmq.LAST_ENDPOINT)
        port = int(first.rpartition(":")[2])
        try:
            sockets[1].bind(f"tcp://{host}:{port + 1}")
        except zmq.ZMQError:
            sockets[0].unbind(first)
            continue
        return f"tcp://{host}:{port}"
    raise ConfigError(f"no two free ports side by side on {host} in {PORT_TRIES} tries; name one: tcp://{host}:PORT")


def transmit(socket: Socket, parts: Sequence[Any], zero_copy: bool = False) -> Any:
    """Send one frame without waiting; a tracker of the memory that is read later if ``zero_copy``.

    Raises
    ------
    Full, Unreachable
        The peer takes no more now, or is gone.
    """
    try:
        return socket.send_multipart(parts, zmq.NOBLOCK, copy=not zero_copy, track=zero_copy)
    except zmq.Again:
        raise Full from None
    except zmq.ZMQError as error:
        if error.errno in (errno.EHOSTUNREACH, errno.ENOTSOCK, zmq.ETERM):
            raise Unreachable from None
        raise
