"""One connection of a learner, from the attempt to its end: two sockets, their monitors, and what is known."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import zmq

from workbench.engine.frames import Buffer, Frame, Opened, body_of, frame
from workbench.engine.security import ClientKeys, secure_client
from workbench.engine.sockets import (
    GONE_EVENTS,
    Monitor,
    Socket,
    block_name,
    make_socket,
    nowhere,
    receive,
    transmit,
)
from workbench.engine.transfers import Full, Unreachable
from workbench.protocol.messages import BULK, CONTROL

KEY_REFUSED = (
    "the syncer's key check refused this process: its public key is not on the syncer's list, "
    "or the server key is another's"
)
LOOK_EVERY_MS = 20
REASON_MAX = 300


class Attempt:
    """A connection that is being made, is open, or was refused.

    Parameters
    ----------
    context : zmq.Context
    identity : bytes
        Random: names this connection on both channels.
    addresses : (str, str)
        Of control and bulk.
    keys : ClientKeys or None

    Attributes
    ----------
    number : int
        Given by the syncer, -1 before.
    gone : bool
    just_opened : bool
        It is open, and nobody has been told.
    refusal : str
        Why, if the syncer said so.
    """

    def __init__(
        self, context: zmq.Context[Any], identity: bytes, addresses: tuple[str, str], keys: ClientKeys | None
    ) -> None:
        self.since = time.monotonic()
        self.identity = identity
        self.number = -1
        self.gone = False
        self.just_opened = False
        self.refusal = ""
        self.blocks = ""
        self._answers: dict[int, Opened] = {}
        self.sockets: list[Socket] = []
        self._monitors: list[Monitor] = []
        for channel in (CONTROL, BULK):
            socket = make_socket(context, zmq.DEALER, channel)
            self.sockets.append(socket)
            socket.identity = identity
            if keys is not None:
                secure_client(socket, keys)
            self._monitors.append(Monitor(socket, GONE_EVENTS))
            socket.connect(addresses[channel])

    @property
    def waited(self) -> list[Socket]:
        """Sockets to wait for."""
        return [*self.sockets, *(monitor.socket for monitor in self._monitors)]

    @property
    def block_name(self) -> str:
        """Name of the block file of this connection."""
        return block_name(self.identity)

    def look(self) -> None:
        """See whether a channel ended."""
        for monitor in self._monitors:
            for event in monitor.events():
                self.fail(KEY_REFUSED if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH else "")

    def fail(self, reason: str) -> None:
        """Note the end of the connection; the first reason that says anything counts."""
        self.gone = True
        self.refusal = self.refusal or reason

    def heard(self, kind: Frame, head: Buffer, channel: int) -> bool:
        """Take a frame that concerns the connection itself; whether it was one."""
        if kind is Frame.OPENED:
            if self.opened(channel, body_of(kind, head)):
                self.just_opened, self.refusal = True, ""
        elif kind is Frame.REFUSAL:
            self.fail(body_of(kind, head).reason[:REASON_MAX])
        elif kind is Frame.GOODBYE:
            self.fail("")
        else:
            return kind is Frame.PING
        return True

    def opened(self, channel: int, answer: Opened) -> bool:
        """Note the syncer's answer on a channel; whether both are there and the connection is open now."""
        self._answers[channel] = answer
        if self.number >= 0 or len(self._answers) < len(self.sockets):
            return False
        if self._answers[CONTROL] != self._answers[BULK] or answer.connection < 0:
            self.fail("the two channels were answered by different syncers")
            return False
        self.number, self.blocks = answer.connection, answer.blocks
        return True

    def part(self, limit_ms: int) -> None:
        """Say that this end closes, and wait, for so long at most, until the other has heard it and all before it."""
        control = self.sockets[CONTROL]
        until = time.monotonic() + limit_ms / 1e3
        if self.number >= 0 and limit_ms:
            with suppress(Full, Unreachable):
                transmit(control, (frame(Frame.GOODBYE),))
        while self.number >= 0 and not self.gone and time.monotonic() < until:
            control.poll(min(limit_ms, LOOK_EVERY_MS))
            while (part := receive(control, nowhere)) is not None:
                self.gone = self.gone or bytes(part.head[1:2]) == bytes((Frame.GOODBYE,))
            self.look()

    def close(self) -> None:
        """Close sockets and monitors."""
        for monitor in self._monitors:
            monitor.close()
        for socket in self.sockets:
            socket.close()
