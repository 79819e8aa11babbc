"""What a learner that was started by hand asks a syncer before it greets it."""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from typing import Any, NamedTuple

import zmq

from workbench.engine.attempt import KEY_REFUSED
from workbench.engine.frames import Ask, Facts, Frame, FrameError, Refusal, body_of, frame, kind_of
from workbench.engine.security import ClientKeys, secure_client
from workbench.engine.sockets import GONE_EVENTS, Monitor, Socket, endpoints, make_context, make_socket
from workbench.protocol.messages import CONTROL

NOBODY = "nothing answers there"
NO_HANDSHAKE = (
    "what answers there completes no handshake: it is no syncer, or keys are given on one side only, "
    "or the syncer's public key is another's (--keys FOLDER)"
)
OTHER_VERSION = "the syncer speaks another version of the wire: use the same release on both sides"
REFUSAL_CHARACTERS_MAX = 1000
READINGS = 8
"""Of the clock there: that counts which was on its way for the shortest time."""


class Answer(NamedTuple):
    """What came of asking.

    Attributes
    ----------
    facts : Facts or None
    origin_ns : int
        Monotonic time at which the run began, by this machine's clock.
    way_ns : int
        From the question to the answer; the origin is as exact as half of it.
    refusal : str
        Why the syncer will not have this learner; asking again does not help.
    trouble : str
        What was seen instead of an answer.
    """

    facts: Facts | None = None
    origin_ns: int = 0
    way_ns: int = 0
    refusal: str = ""
    trouble: str = ""


def ask(address: str, keys: ClientKeys | None, question: Ask, timeout_s: float) -> Answer:
    """Ask the syncer at ``tcp://HOST:PORT``; waits at most ``timeout_s`` for its answer.

    It is asked several times: half of an answer's way counts for the clock, and the first way holds the making of the
    connection, another one perhaps a wait for a busy machine.
    """
    context = make_context()
    socket = make_socket(context, zmq.DEALER, CONTROL)
    socket.identity = b"A" + secrets.token_bytes(12)
    if keys is not None:
        secure_client(socket, keys)
    monitor = Monitor(socket, GONE_EVENTS)
    until = time.monotonic() + timeout_s
    try:
        socket.connect(endpoints(address)[CONTROL])
        answer = _exchange(socket, monitor, question, until)
        for _ in range(READINGS if answer.facts is not None else 0):
            other = _exchange(socket, monitor, question, until)
            if other.facts is not None and other.way_ns < answer.way_ns:
                answer = other
        return answer
    finally:
        monitor.close()
        context.destroy(0)


def _exchange(socket: Socket, monitor: Monitor, question: Ask, until: float) -> Answer:
    sent_ns = time.monotonic_ns()
    with suppress(zmq.Again):  # refused already: the monitor knows more
        socket.send(frame(Frame.ASK, question), zmq.NOBLOCK)
    poller: Any = zmq.Poller()
    poller.register(socket, zmq.POLLIN)
    poller.register(monitor.socket, zmq.POLLIN)
    while (left_ms := (until - time.monotonic()) * 1e3) > 0:
        poller.poll(left_ms)
        if socket.poll(0):
            return _understood(socket.recv_multipart(), sent_ns)
        events = monitor.events()
        if zmq.EVENT_HANDSHAKE_FAILED_AUTH in events:
            return Answer(refusal=KEY_REFUSED)
        if {zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL} & {*events}:
            return Answer(trouble=NO_HANDSHAKE)
        if events:
            return Answer(trouble=NOBODY)
    return Answer(trouble=NOBODY)


def _understood(parts: list[bytes], sent_ns: int) -> Answer:
    now_ns = time.monotonic_ns()
    try:
        kind = kind_of(parts[0])
        body = body_of(kind, parts[0]) if kind in (Frame.FACTS, Frame.REFUSAL) else None
    except FrameError as error:
        return Answer(refusal=OTHER_VERSION if str(error) == "version" else "", trouble=NO_HANDSHAKE)
    if isinstance(body, Refusal):
        return Answer(refusal=body.reason[:REFUSAL_CHARACTERS_MAX])
    if isinstance(body, Facts):
        return Answer(body, (sent_ns + now_ns) // 2 - body.now_ns, now_ns - sent_ns)
    return Answer(trouble=NO_HANDSHAKE)
