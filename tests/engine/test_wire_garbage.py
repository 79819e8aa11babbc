"""Whatever comes in at the doors: dropped, counted, and nothing grows or breaks."""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import subprocess
import sys
from typing import Any

import msgspec
import numpy as np
import psutil
import pytest

from tests.engine.strangers import expect, still_works, stranger
from tests.engine.wires import (
    LARGE,
    LEARNER,
    SIZES,
    Pair,
    fragment,
    join,
    metadata,
    pair,
    record,
    until,
    values,
)
from workbench.engine.blocks import Descriptor
from workbench.engine.frames import Chunk, Chunked, Frame, encode, frame
from workbench.engine.sockets import endpoints
from workbench.protocol.messages import BULK, CONTROL

SEND_AND_WAIT = """
import sys
from tests.engine.wires import LEARNER, PROCESS, RUN, SIZES, fragment, until, values
from workbench.engine.learner_wire import LearnerWire
from workbench.protocol.messages import BULK
wire = LearnerWire(RUN, SIZES, LEARNER, PROCESS, sys.argv[1])
wire.connect()
until(lambda: wire.poll(10) or wire.opened())
assert wire.send(wire.connection, BULK, fragment(2), values(2))
while True:
    wire.poll(1000)
"""


@pytest.mark.parametrize("transport", ["mapped", "tcp"])
@pytest.mark.parametrize("channel", [CONTROL, BULK])
def test_random_frames_are_dropped(transport: str, channel: int) -> None:
    chance = random.Random(4)
    with pair(transport) as both, stranger(both) as client:
        client.greet(both)
        sent = 300
        for _ in range(sent):
            parts = [chance.randbytes(chance.randrange(200)) for _ in range(chance.choice((1, 1, 2, 3)))]
            if chance.random() < 0.7:
                parts[0] = bytes((1, chance.choice((1, 5, 6, 7, 7, 8, 9)))) + parts[0]
            client.send(channel, *parts)
        until(lambda: both.turn().syncer.refused.total() >= sent or both.gone)
        assert both.up == []
        still_works(both)


@pytest.mark.parametrize("transport", ["mapped", "tcp"])
@pytest.mark.parametrize("channel", [CONTROL, BULK])
def test_bytes_that_are_no_frames_do_no_harm(transport: str, channel: int) -> None:
    with pair(transport) as both:
        noises = [random.Random(channel).randbytes(5000), b"GET / HTTP/1.1\r\n\r\n" * 20, b"\xff" * 64]
        with contextlib.ExitStack() as open_while_others_work:
            for noise in noises:
                raw = open_while_others_work.enter_context(_connected(both, channel))
                raw.sendall(noise)
            still_works(both)
        assert len(both.syncer._connections.numbers) == 1


@pytest.mark.parametrize("transport", ["mapped", "tcp"])
@pytest.mark.parametrize("channel", [CONTROL, BULK])
def test_who_claims_a_gigabyte_is_cut_off(transport: str, channel: int) -> None:
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + b"\x00" + bytes(31)
    properties = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"
    ready = b"\x04" + bytes((len(properties),)) + properties
    claim = b"\x02" + (1 << 30).to_bytes(8, "big") + b"x" * 100
    process = psutil.Process()
    with pair(transport) as both:
        still_works(both)
        before = process.memory_info().rss
        with _connected(both, channel) as raw:
            raw.sendall(greeting + ready + claim)
            until(lambda: _closed(raw, both))
        assert process.memory_info().rss - before < 64 << 20
        still_works(both)


def _connected(both: Pair, channel: int) -> socket.socket:
    place = endpoints(both.syncer.address)[channel]
    if place.startswith("ipc://"):
        raw = socket.socket(socket.AF_UNIX)
        raw.connect(place.removeprefix("ipc://"))
    else:
        host, port = place.removeprefix("tcp://").split(":")
        raw = socket.create_connection((host, int(port)))
    raw.setblocking(False)
    return raw


def _closed(raw: socket.socket, both: Pair) -> bool:
    both.turn()
    try:
        while raw.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def test_messages_that_must_not_be_are_dropped() -> None:
    wrong: dict[str, list[Any]] = {
        "learner": [join(4), join(LEARNER, 8), fragment(0, learner=2)],
        "fragment": [
            fragment(0, fragment=len(SIZES)),
            fragment(0, fragment=-1),
            msgspec.structs.replace(metadata(), base=[1]),
            msgspec.structs.replace(metadata(), c_steps=[1] * 99),
        ],
        "codec": [fragment(0, codec="f64")],
        "number": [
            fragment(0, digest=-1),
            fragment(0, step=1 << 60),
            fragment(0, nbytes=1 << 62),
            msgspec.structs.replace(metadata(), n=-5),
            msgspec.structs.replace(metadata(), clock=(1,) * 70_000),
        ],
        "record": [
            msgspec.structs.replace(metadata(), records=[record(learner=2)]),
            msgspec.structs.replace(metadata(), records=[record(kind=48)]),
            msgspec.structs.replace(metadata(), records=[record(seq=0)]),
        ],
    }
    with pair("mapped") as both, stranger(both) as client:
        client.greet(both)
        for reason, messages in wrong.items():
            for count, message in enumerate(messages, 1):
                client.send(BULK, frame(Frame.MESSAGE, message))
                expect(both, reason, count)
        assert both.up == []
        still_works(both)


def test_payloads_that_are_not_what_the_manifest_says() -> None:
    head = frame(Frame.MESSAGE, fragment(0))
    outside = Descriptor("../../etc/passwd", 0, 1, 4000)
    with pair("mapped") as both, stranger(both) as client:
        client.greet(both)
        client.send(BULK, head, encode(Chunked(1, 1 << 40)))
        expect(both, "size")
        client.send(BULK, frame(Frame.MESSAGE, fragment(0, nbytes=16)), encode(Chunked(2, 16)))
        expect(both, "size", 2)
        client.send(BULK, head, encode(outside))
        expect(both, "reference")
        assert [message.handle for _, message in both.up] == [-1, -1, -1]
        both.up.clear()
        client.send(BULK, head)
        client.send(BULK, head, b"x" * 600)
        client.send(CONTROL, head, encode(Chunked(3, 4000)))
        expect(both, "reference", 4)
        client.send(BULK, frame(Frame.CHUNK, Chunk(9, 0, 4000)), bytes(4000))
        expect(both, "chunk")
        for count, chunk in enumerate((Chunk(4, 4, 4000), Chunk(5, 0, 4000), Chunk(4, 0, 3996)), 2):
            client.send(BULK, head, encode(Chunked(4, 4000)))
            client.send(BULK, frame(Frame.CHUNK, chunk), bytes(4000))
            expect(both, "chunk", count)
        client.send(BULK, head, encode(Chunked(6, 4000)))
        client.send(BULK, frame(Frame.CHUNK, Chunk(6, 0, 4000)), bytes(5000))
        expect(both, "chunk", 5)
        client.send(BULK, head, encode(Chunked(7, 4000)))
        client.send(BULK, frame(Frame.CHUNK, Chunk(7, 0, 4000)), bytes(4000), b"more")
        expect(both, "chunk", 6)
        assert both.up == [] and len(both.syncer._connections.payloads) == 0
        still_works(both)


def test_memory_does_not_grow_under_garbage() -> None:
    process = psutil.Process()
    with pair("tcp") as both, stranger(both) as client:
        client.greet(both)
        huge = random.Random(1).randbytes(4 << 20)
        deep = frame(Frame.MESSAGE) + b"\x91" * 500_000

        def flood(times: int) -> None:
            for _ in range(times):
                aim = both.syncer.refused.total() + 3
                client.send(BULK, bytes((1, Frame.MESSAGE)) + huge, huge)
                client.send(BULK, frame(Frame.MESSAGE, fragment(LARGE)), encode(Chunked(1, 4 * SIZES[LARGE])))
                client.send(BULK, deep)
                client.send(CONTROL, b"\x01\x07\xdd\xff\xff\xff\xff")
                until(lambda aim=aim: both.turn().syncer.refused.total() >= aim)  # type: ignore[misc]

        flood(5)
        before = process.memory_info().rss
        flood(60)
        assert process.memory_info().rss - before < 48 << 20
        assert len(both.syncer.refused) < 10 and both.up == []
        still_works(both)


@pytest.mark.parametrize("transport", ["mapped", "tcp"])
def test_a_learner_killed_with_its_payload_in_use(transport: str) -> None:
    with pair(transport) as both:
        process = subprocess.Popen([sys.executable, "-c", SEND_AND_WAIT, both.syncer.address])
        try:
            until(lambda: both.turn().up)
            held = both.syncer.payload(both.up[0][1].handle)
            process.send_signal(signal.SIGKILL)
            process.wait()
            until(lambda: both.turn().gone == [1])
            np.testing.assert_array_equal(held, values(LARGE))
            both.syncer.release(both.up[0][1].handle)
            assert not list(both.folder.path.glob("l-*"))
        finally:
            process.kill()
            process.wait()


def test_a_learner_drops_what_its_syncer_must_not_send() -> None:
    with pair("mapped") as both:
        number = both.connect()
        link = both.syncer._connections.numbers[number]
        connections = both.syncer._connections
        bad = frame(Frame.MESSAGE, msgspec.structs.replace(metadata()))
        connections.give(link, CONTROL, (bad,))
        connections.give(link, BULK, (bytes((9, 9)),))
        connections.give(link, BULK, (b"",))
        until(lambda: both.turn().learner.refused.total() >= 3)
        assert both.down == [] and both.learner.connection == number
        still_works(both)
