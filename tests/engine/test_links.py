"""Framed messages between a supervisor and its processes."""

from __future__ import annotations

import socket
import struct
import time

import pytest

from workbench.engine.links import Link, pair


def both() -> tuple[Link, Link]:
    ours, theirs = pair()
    return ours, Link(theirs)


def test_messages_come_whole_and_in_order() -> None:
    a, b = both()
    sent = [{"number": n, "text": "x" * n, "raw": bytes(n)} for n in (0, 1, 5000, 300_000)]
    for message in sent:
        assert a.send(message)
    found = []
    for _ in sent:
        while (came := b.receive(0.01)) is None:
            a.flush()
        found.append(came)
    assert found == sent
    a.close()
    assert b.receive(1.0) is None and b.closed


def test_receive_waits_no_longer_than_it_is_told() -> None:
    a, b = both()
    began = time.monotonic()
    assert b.receive(0.05) is None
    assert 0.04 < time.monotonic() - began < 5.0
    assert not b.closed
    a.close()
    b.close()


@pytest.mark.parametrize("data", [struct.pack("<I", 1 << 31), struct.pack("<I", 3) + b"\xc1\xc1\xc1"])
def test_what_is_no_frame_closes_the_link_and_allocates_nothing(data: bytes) -> None:
    ours, theirs = socket.socketpair()
    link = Link(ours, frame_bytes_max=1 << 16)
    theirs.sendall(data)
    assert link.receive(1.0) is None
    assert link.closed
    theirs.close()


def test_who_watches_a_link_is_told_once_before_it_closes() -> None:
    a, b = both()
    told: list[int] = []
    a.on_close = lambda: told.append(a.fileno())
    a.close()
    a.close()
    assert len(told) == 1 and told[0] >= 0
    assert not a.send({"late": True})
    b.close()


def test_a_peer_that_is_gone_is_found_out() -> None:
    a, b = both()
    b.close()
    while a.send({"text": "x" * 1000}):
        pass
    assert a.closed
