"""Framed msgpack messages over a connected stream socket: between a supervisor and its own processes, and its clients.

A frame is four bytes of length and a msgpack table.  Sizes are checked before anything is allocated; a peer that does
not read is cut off when too much waits for it.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import msgspec

LENGTH = struct.Struct("<I")
FRAME_BYTES_MAX = 64 << 20
WAITING_BYTES_MAX = 256 << 20

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Any]).decode


class Link:
    """One end of a pair; it never blocks, except in `receive` with a time limit.

    Parameters
    ----------
    sock : socket
        Connected, stream; the link owns it from now on.
    frame_bytes_max : int
        Longest frame that is taken.

    Attributes
    ----------
    closed : bool
        The other end is gone, or it sent what is no frame.
    on_close : callable, optional
        Called once, before the socket is closed: whoever watches it lets go of it.
    """

    def __init__(self, sock: socket.socket, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.closed = False
        self.on_close: Callable[[], Any] | None = None
        self._frame_bytes_max = frame_bytes_max
        self._incoming = bytearray()
        self._outgoing = bytearray()

    def fileno(self) -> int:
        """File descriptor, to be watched."""
        return self.sock.fileno()

    @property
    def waiting(self) -> bool:
        """Whether something is left to be sent."""
        return bool(self._outgoing) and not self.closed

    def send(self, message: dict[str, Any]) -> bool:
        """Send a table, or keep it until the other end takes it; False if there is no other end."""
        if self.closed:
            return False
        data = _encode(message)
        self._outgoing += LENGTH.pack(len(data)) + data
        if len(self._outgoing) > WAITING_BYTES_MAX:
            self.close()
            return False
        self.flush()
        return not self.closed

    def flush(self) -> None:
        """Send what the other end takes now."""
        while self._outgoing and not self.closed:
            try:
                sent = self.sock.send(self._outgoing)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.close()
                return
            del self._outgoing[:sent]

    def read(self) -> list[dict[str, Any]]:
        """Messages that have come whole; sets `closed` at the end of the stream."""
        while not self.closed:
            try:
                data = self.sock.recv(1 << 18)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                data = b""
            if not data:
                self.close()
                break
            self._incoming += data
        return self._frames()

    def take(self, data: bytes) -> list[dict[str, Any]]:
        """Messages that are whole with ``data``, which somebody else has read from the socket."""
        self._incoming += data
        return self._frames()

    def _frames(self) -> list[dict[str, Any]]:
        found = []
        while len(self._incoming) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._incoming)
            if length > self._frame_bytes_max:
                self._drop()
                break
            end = LENGTH.size + length
            if len(self._incoming) < end:
                break
            try:
                found.append(_decode(memoryview(self._incoming)[LENGTH.size : end].tobytes()))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._drop()
                break
            del self._incoming[:end]
        return found

    def _drop(self) -> None:
        self._incoming.clear()
        self.close()

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next message, waiting for it; None after ``timeout_s`` seconds or at the end of the stream."""
        until = time.monotonic() + timeout_s
        while True:
            frames = self._frames() or self.read()
            if frames:
                for late in reversed(frames[1:]):
                    data = _encode(late)
                    self._incoming[:0] = LENGTH.pack(len(data)) + data
                return frames[0]
            left = until - time.monotonic()
            if self.closed or left <= 0:
                return None
            select.select([self.sock], [self.sock] if self.waiting else [], [], left)
            self.flush()

    def close(self) -> None:
        """Close this end; a second call does nothing."""
        if self.closed:
            return
        self.closed = True
        if self.on_close is not None:
            self.on_close()
        self.sock.close()


def pair() -> tuple[Link, socket.socket]:
    """A link, and the socket of its other end for another process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Link(ours), theirs
