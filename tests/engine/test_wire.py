"""Messages and payloads over both transports, with and without keys."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np
import pytest

from tests.engine.strangers import stranger
from tests.engine.wires import (
    HANG_S,
    LARGE,
    LEARNER,
    PROCESS,
    SIZES,
    TRANSPORTS,
    fragment,
    learner_messages,
    metadata,
    pair,
    syncer_messages,
    until,
    update,
    values,
)
from workbench.algorithms.codecs import decode, encode
from workbench.config import ConfigError
from workbench.engine import connections
from workbench.engine.frames import Frame, frame
from workbench.engine.runtime_folder import RuntimeFolder
from workbench.engine.wire import SyncerWire
from workbench.protocol.messages import BULK, CONTROL, Fragment, Metadata, Pull


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_message_arrives_as_it_was_sent(transport: str) -> None:
    with pair(transport) as both:
        number = both.connect()
        assert both.syncer.peer(number) == (LEARNER, PROCESS)
        for channel in (CONTROL, BULK):
            both.up.clear()
            both.down.clear()
            assert all(both.learner.send(number, channel, message) for message in learner_messages())
            assert all(both.syncer.send(number, channel, message) for message in syncer_messages())
            until(lambda: len(both.turn().up) == len(learner_messages()) and len(both.down) == len(syncer_messages()))
            assert both.up == [(number, message) for message in learner_messages()]
            assert both.down == [(number, message) for message in syncer_messages()]
        assert not both.syncer.refused and not both.learner.refused


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("p", range(len(SIZES)))
def test_payloads_arrive_whole_in_both_directions(transport: str, p: int) -> None:
    with pair(transport) as both:
        number = both.connect()
        assert both.learner.send(number, BULK, fragment(p), values(p))
        assert both.syncer.send(number, BULK, update(p), values(p, 1))
        until(lambda: both.turn().up and both.down and both.handed)
        (_, up), (_, down) = both.up[0], both.down[0]
        came, back = both.syncer.payload(up.handle), both.learner.payload(down.handle)
        np.testing.assert_array_equal(came, values(p))
        np.testing.assert_array_equal(back, values(p, 1))
        assert came.dtype == back.dtype == np.float32 and not came.flags.writeable and not back.flags.writeable
        assert both.handed == [(number, p, 1)]
        both.syncer.release(up.handle)
        both.syncer.release(up.handle)
        with pytest.raises(KeyError):
            both.syncer.payload(up.handle)


@pytest.mark.parametrize("transport", ["mapped", "tcp"])
def test_a_coded_payload_has_its_codecs_type(transport: str) -> None:
    base = values(1, 5)
    with pair(transport) as both:
        number = both.connect()
        coded = encode(1, values(1), base, "bf16")
        assert both.learner.send(number, BULK, fragment(1, codec="bf16"), coded)
        until(lambda: both.turn().up)
        came = both.syncer.payload(both.up[0][1].handle)
        assert came.dtype == coded.dtype
        np.testing.assert_array_equal(decode(1, came, base, "bf16"), decode(1, coded, base, "bf16"))


@pytest.mark.parametrize("transport", ["mapped", "tcp"])
def test_each_channel_is_first_in_first_out(transport: str) -> None:
    with pair(transport) as both:
        number = both.connect()
        for n in range(40):
            assert both.learner.send(number, CONTROL, metadata(n, 0))
            if n % 2:
                assert both.learner.send(number, BULK, fragment(n % 3, n), values(n % 3))
            else:
                assert both.learner.send(number, BULK, metadata(n, 1))
        until(lambda: len(both.turn().up) == 80)
        rounds = [message.round for _, message in both.up if isinstance(message, Fragment)]
        assert rounds == list(range(1, 40, 2))
        even = [message.n for _, message in both.up if isinstance(message, Metadata) and message.g == 1]
        assert even == list(range(0, 40, 2))
        control = [message.n for _, message in both.up if isinstance(message, Metadata) and message.g == 0]
        assert control == list(range(40))


def test_more_captures_than_slots_travel_in_chunks() -> None:
    with pair("mapped") as both:
        number = both.connect()
        for k in range(10):
            assert both.learner.send(number, BULK, fragment(0, k), values(0, k))
        until(lambda: len(both.turn().up) == 10)
        for k, (_, message) in enumerate(both.up):
            np.testing.assert_array_equal(both.syncer.payload(message.handle), values(0, k))
        for _, message in both.up:
            both.syncer.release(message.handle)
        until(lambda: both.turn().learner._captures.used == 0)


@pytest.mark.parametrize("transport", ["mapped", "tcp"])
def test_a_held_payload_survives_its_connection(transport: str) -> None:
    with pair(transport) as both:
        number = both.connect()
        assert both.learner.send(number, BULK, fragment(LARGE), values(LARGE))
        until(lambda: both.turn().up)
        held = both.syncer.payload(both.up[0][1].handle)
        both.syncer.disconnect(number)
        until(lambda: both.turn().ended == [number])
        again = both.connect()
        assert again == number + 1 and both.gone == [number]
        both.up.clear()
        assert both.learner.send(again, BULK, fragment(LARGE), values(LARGE, 9))
        until(lambda: both.turn().up)
        np.testing.assert_array_equal(held, values(LARGE))
        both.syncer.release(1)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_both_ends_learn_that_the_other_is_gone(transport: str) -> None:
    with pair(transport) as both:
        number = both.connect()
        both.learner.close()
        until(lambda: both.syncer.poll(1000) or both.syncer.closed() == [number])
        assert not both.syncer.send(number, CONTROL, syncer_messages()[3])
        both.learner = both.another()
        number = both.connect()
        both.syncer.close()
        until(lambda: both.learner.poll(1000) or both.learner.closed() == [number])
        assert both.learner.connection == -1
        assert not both.learner.send(number, CONTROL, metadata())
        both.learner.connect()
        until(lambda: both.learner.poll(1000) or both.learner.closed() == [-1])


def until_gone(doors: Any, link: Any, channel: int) -> None:
    """Ask until a peer is not there, ever more seldom: a channel that is full of questions, and is not read, counts as
    there, and on the bulk channel there is room for eight."""
    for pause_s in (0.02 * 2**n for n in range(12)):
        time.sleep(pause_s)
        if not doors._reaches(link, channel):
            return
    raise AssertionError("it is there still")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_last_words_are_heard_of_a_peer_that_is_found_gone(transport: str) -> None:
    with pair(transport) as both:
        number = both.connect()
        doors = both.syncer._connections
        link = doors.numbers[number]
        assert both.learner.send(number, CONTROL, metadata())
        assert both.learner._attempt is not None
        for socket in both.learner._attempt.sockets:
            socket.linger = 5000
        both.learner._end()  # without a farewell
        until_gone(doors, link, CONTROL)  # and nothing has been read since
        doors.ask_all()
        assert both.syncer.poll(0) == [(number, metadata())]
        assert both.syncer.closed() == [number]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_who_closes_waits_until_its_last_words_are_read(transport: str) -> None:
    with pair(transport) as both:
        number = both.connect()
        assert both.learner.send(number, CONTROL, metadata())
        closing = threading.Thread(target=both.learner.close, args=(int(1e3 * HANG_S),))
        closing.start()
        until(lambda: both.turn_syncer().gone)
        closing.join(HANG_S)
        assert not closing.is_alive() and both.up == [(number, metadata())] and both.gone == [number]


def test_a_closed_bulk_channel_leaves_control_the_time_for_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LAST_WORDS_S", HANG_S)
    with pair("tcp") as both, stranger(both) as client:
        client.greet(both)
        ((number, link),) = both.syncer._connections.numbers.items()
        client.sockets[BULK].close(0)
        until_gone(both.syncer._connections, link, BULK)
        assert both.syncer.send(number, BULK, syncer_messages()[0]), "what is sent into it is lost, no more"
        assert both.syncer.poll(0) == [] and both.syncer.closed() == []
        client.send(CONTROL, frame(Frame.MESSAGE, metadata()))
        assert until(lambda: both.syncer.poll(5)) == [(number, metadata())]
        monkeypatch.setattr(connections, "LAST_WORDS_S", 0.0)
        both.syncer._connections.ask_all()
        assert both.syncer.closed() == [number], "half a connection is none"


def test_a_slow_learner_gets_nothing_rather_than_torn_data() -> None:
    with pair("mapped") as both:
        number = both.connect()
        for version in range(1, 6):
            assert both.syncer.send(number, BULK, update(0, version), values(0, version))
        until(lambda: len(both.turn().down) + both.learner.refused["late"] == 5)
        assert [message.version for _, message in both.down] == [3, 4, 5]
        for _, message in both.down:
            np.testing.assert_array_equal(both.learner.payload(message.handle), values(0, message.version))


@pytest.mark.parametrize("transport", ["mapped", "tcp"])
def test_a_full_channel_does_not_block(transport: str) -> None:
    with pair(transport) as both:
        number = both.connect()
        sent, large = 0, values(LARGE)
        while both.syncer.send(number, BULK, update(LARGE, sent), large):
            sent += 1
            assert sent < 2000
        told = 0
        while both.syncer.send(number, CONTROL, syncer_messages()[1]):
            told += 1
            assert told < 100_000
        assert sent >= 8 and told >= 500
        until(lambda: len(both.turn().handed) == sent)
        until(lambda: sum(isinstance(m, Pull) for _, m in both.turn().down) == told)
        assert both.syncer.send(number, CONTROL, syncer_messages()[1])


def test_wake_ends_a_poll_and_watched_files_too() -> None:
    with pair("mapped") as both:
        threading.Timer(0.01, both.syncer.wake).start()
        assert both.syncer.poll(1e3 * 60) == []
        end, other = os.pipe()
        both.syncer.watch(end)
        os.write(other, b"x")
        until(lambda: both.syncer.poll(1000) or both.syncer.ready() == [end])
        both.syncer.unwatch(end)
        os.close(end)
        os.close(other)
        both.syncer.poll(0)
        assert both.syncer.ready() == []


def test_a_port_in_use_and_both_places_at_once_are_refused() -> None:
    wire = SyncerWire("a", SIZES, listen="tcp://127.0.0.1:0")
    try:
        with pytest.raises(ConfigError, match="cannot listen on"):
            SyncerWire("b", SIZES, listen=wire.address)
        with pytest.raises(ConfigError, match="either a folder or an address"):
            SyncerWire("b", SIZES)
    finally:
        wire.close()


def test_nothing_is_left_behind() -> None:
    folder = RuntimeFolder.create()
    before = {path.name for path in folder.path.iterdir()}
    with pair("mapped") as both:
        number = both.connect()
        assert both.learner.send(number, BULK, fragment(0), values(0))
        assert both.syncer.send(number, BULK, update(0), values(0))
        until(lambda: both.turn().up and both.down)
        both.learner.close()
        both.syncer.close()
        assert {path.name for path in both.folder.path.iterdir()} == before
    folder.remove()
    assert not folder.path.exists()
