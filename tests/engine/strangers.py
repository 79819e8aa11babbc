"""Clients that send whatever they like, and the proof that the others did not notice."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import zmq

from tests.engine.wires import (
    HANG_S,
    LEARNER,
    PROCESS,
    RUN,
    SIZES,
    Pair,
    fragment,
    until,
    values,
)
from workbench.engine.frames import Frame, Hello, frame, sizes_digest
from workbench.engine.sockets import endpoints
from workbench.protocol.messages import BULK, CONTROL


class Stranger:
    """A bare client that may send anything on either channel."""

    def __init__(self, address: str) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        self.sockets = []
        for place in endpoints(address):
            client = self._context.socket(zmq.DEALER)
            client.identity = b"stranger-of-the-tests"
            client.rcvtimeo = client.sndtimeo = int(HANG_S * 1e3)
            client.connect(place)
            self.sockets.append(client)

    def send(self, channel: int, *parts: bytes) -> None:
        self.sockets[channel].send_multipart(parts)

    def greet(self, both: Pair, **changes: Any) -> None:
        """Become a connection like any other."""
        hello = Hello(RUN, LEARNER, PROCESS, sizes_digest(SIZES), both.syncer.address.startswith("/"))
        for channel in (CONTROL, BULK):
            self.send(channel, frame(Frame.HELLO, msgspec.structs.replace(hello, **changes)))
        until(lambda: both.turn().syncer._connections.numbers or changes)

    def close(self) -> None:
        self._context.destroy(0)


@contextlib.contextmanager
def stranger(both: Pair) -> Iterator[Stranger]:
    client = Stranger(both.syncer.address)
    try:
        yield client
    finally:
        client.close()


def expect(both: Pair, reason: str, count: int = 1) -> None:
    until(lambda: both.turn().syncer.refused[reason] >= count)


def still_works(both: Pair) -> None:
    number = both.connect()
    before = len(both.up)
    assert both.learner.send(number, BULK, fragment(0), values(0))
    until(lambda: len(both.turn().up) > before)
    np.testing.assert_array_equal(both.syncer.payload(both.up[-1][1].handle), values(0))
