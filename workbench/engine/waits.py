"""One place to wait for sockets, for file descriptors of the process, and for other threads."""

from __future__ import annotations

import math
import os
from typing import Any

import zmq

from workbench.engine.sockets import Socket


class Waits:
    """What one thread waits for."""

    def __init__(self) -> None:
        self._poller = zmq.Poller()
        self._fd, self._end = os.pipe()
        for fd in (self._fd, self._end):
            os.set_blocking(fd, False)
        self._poller.register(self._fd, zmq.POLLIN)
        self._watched: set[int] = set()
        self._ready: list[int] = []

    def add(self, socket: Socket) -> None:
        """Wait for a socket too."""
        self._poller.register(socket, zmq.POLLIN)

    def remove(self, socket: Socket) -> None:
        """Wait for it no longer."""
        self._poller.unregister(socket)

    def watch(self, fd: int) -> None:
        """Wait for a file descriptor too."""
        if fd not in self._watched:
            self._watched.add(fd)
            self._poller.register(fd, zmq.POLLIN)

    def unwatch(self, fd: int) -> None:
        """Wait for it no longer; before it is closed."""
        if fd in self._watched:
            self._watched.remove(fd)
            self._poller.unregister(fd)

    def ready(self) -> list[int]:
        """Watched file descriptors that were readable, or closed at the other end, at the last wait."""
        return self._ready

    def wake(self) -> None:
        """End the wait in progress, or the next one; from any thread, or from a signal handler."""
        try:
            os.write(self._end, b"\0")
        except OSError:  # full: awake already; closed: nobody waits
            return

    def wait(self, timeout_ms: float, writable: Socket | None = None) -> set[Any]:
        """Sockets that have something to read, or ``writable`` if it takes more, after at most ``timeout_ms``."""
        if writable is not None:
            self._poller.modify(writable, zmq.POLLIN | zmq.POLLOUT)
        found = {key for key, _ in self._poller.poll(max(0, math.ceil(timeout_ms)))}
        if writable is not None:
            self._poller.modify(writable, zmq.POLLIN)
        if self._fd in found:
            self._drain()
        self._ready = sorted(fd for fd in self._watched if fd in found)
        return found

    def close(self) -> None:
        """Close the ends of `wake`."""
        end, self._end = self._end, -1
        os.close(end)
        os.close(self._fd)

    def _drain(self) -> None:
        try:
            while len(os.read(self._fd, 4096)) == 4096:
                pass
        except BlockingIOError:
            return
