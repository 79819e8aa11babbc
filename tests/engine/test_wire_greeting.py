"""Who may become a connection, and what the others are told."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import zmq

from tests.engine.strangers import expect, still_works, stranger
from tests.engine.wires import (
    LEARNER,
    PROCESS,
    RUN,
    SIZES,
    join,
    pair,
    until,
)
from workbench.engine.frames import Frame, Hello, frame, sizes_digest
from workbench.engine.learner_wire import LearnerWire
from workbench.engine.runtime_folder import RuntimeFolder
from workbench.engine.sockets import endpoints
from workbench.protocol.messages import BULK, CONTROL


@pytest.mark.parametrize(
    ("changes", "word", "sentence"),
    [
        ({"run_id": "x" * 500}, "run", "this is the syncer of run"),
        ({"sizes": SIZES[:2]}, "manifest", "other sizes"),
        ({"learner": -1}, "learner", "no such learner"),
    ],
)
def test_a_learner_that_does_not_belong_here_is_told_why(changes: dict[str, Any], word: str, sentence: str) -> None:
    with pair("tcp") as both:
        wire = both.another(**changes)
        try:
            wire.connect()
            until(lambda: both.turn() and (wire.poll(1) or wire.closed() == [-1]))
            assert sentence in wire.refusal and len(wire.refusal) < 400
            assert both.syncer.refused[word] >= 1 and wire.connection == -1
        finally:
            wire.close(0)


def test_mapped_and_chunked_do_not_mix_and_versions_neither() -> None:
    with pair("tcp") as both, stranger(both) as client:
        client.greet(both, mapped=True)
        expect(both, "hello", 2)
        client.send(CONTROL, bytes((2, Frame.HELLO)) + b"?")
        expect(both, "version")
        answers = [client.sockets[CONTROL].recv() for _ in range(2)]
        assert b"one machine" in answers[0] and b"version 1" in answers[1]
        client.send(BULK, frame(Frame.MESSAGE, join()))
        expect(both, "stranger")


def test_many_who_greet_by_half_are_forgotten() -> None:
    with pair("tcp") as both:
        context: zmq.Context[Any] = zmq.Context()
        try:
            hello = frame(Frame.HELLO, Hello(RUN, LEARNER, PROCESS, sizes_digest(SIZES), False))
            clients = [context.socket(zmq.DEALER) for _ in range(150)]
            for client in clients:
                client.connect(endpoints(both.syncer.address)[BULK])
                client.send(hello)
            for client in clients:
                client.send(b"\x01")
            until(lambda: both.turn().syncer.refused["garbled"] == 150)
            assert len(both.syncer._connections._doorstep) <= 64
            assert not both.syncer._connections.numbers
        finally:
            context.destroy(0)
        still_works(both)


@pytest.mark.parametrize("place", ["folder", "tcp"])
def test_nobody_there_is_told_and_never_raised(place: str) -> None:
    folder = RuntimeFolder.create()
    with socket.create_server(("127.0.0.1", 0)) as closed_soon:
        port = closed_soon.getsockname()[1]
    address = str(folder.path) if place == "folder" else f"tcp://127.0.0.1:{port}"
    wire = LearnerWire(RUN, SIZES, LEARNER, PROCESS, address)
    try:
        for _ in range(50):
            wire.connect()
            until(lambda: wire.poll(1000) or wire.closed() == [-1])
        assert wire.connection == -1 and not wire.opened()
    finally:
        wire.close(0)
        folder.remove()
