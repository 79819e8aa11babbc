"""What a learner that was started by hand is told before it greets."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from msgspec import structs

from tests.engine.strangers import expect, still_works, stranger
from tests.engine.wires import RUN, Pair, pair, until
from workbench.engine import asking
from workbench.engine.asking import NO_HANDSHAKE, NOBODY, READINGS, Answer, ask
from workbench.engine.frames import Ask, Facts, Frame, frame
from workbench.engine.security import ClientKeys, make_keys
from workbench.protocol.messages import CONTROL

FACTS = Facts(RUN, 7, 5_000_000_000, {"numpy": "2"}, "")
QUESTION = Ask(0, {"seed": "3"})


@contextmanager
def serving(both: Pair) -> Iterator[None]:
    """The syncer's end is polled while the test asks."""
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            both.syncer.poll(5)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def asked(transport: str, answer: Callable[[Ask], Facts | str], **changes: ClientKeys | None) -> Answer:
    with pair(transport) as both:
        both.syncer.answer(answer)
        with serving(both):
            return ask(both.syncer.address, **{"keys": both.client, **changes}, question=QUESTION, timeout_s=30.0)


@pytest.mark.parametrize("transport", ["tcp", "curve"])
def test_facts_come_with_the_runs_own_time(transport: str) -> None:
    before = time.monotonic_ns()
    found = asked(transport, lambda question: FACTS if question == QUESTION else "no")
    assert found.facts == FACTS
    assert before <= found.origin_ns + FACTS.now_ns <= time.monotonic_ns()


def test_the_clock_is_read_from_the_answer_that_came_quickest() -> None:
    """A busy syncer tells its time and sends it a tenth of a second later: half of that is an error."""
    told = [0.1] * 4 + [0.0] * READINGS
    began = time.monotonic_ns()

    def answer(question: Ask) -> Facts:
        now = time.monotonic_ns() - began
        time.sleep(told.pop(0))
        return structs.replace(FACTS, now_ns=now)

    found = asked("tcp", answer)
    assert abs(found.origin_ns - began) <= found.way_ns < 100_000_000


def test_a_refusal_comes_as_it_was_said() -> None:
    found = asked("tcp", lambda question: "seed = 3 at the learner, 4 at the syncer")
    assert found == Answer(refusal="seed = 3 at the learner, 4 at the syncer")


def test_a_key_that_is_not_on_the_list_is_told_at_once() -> None:
    with pair("curve") as both, serving(both):
        assert both.client is not None
        stranger_keys = ClientKeys(make_keys(), both.client.server)
        found = ask(both.syncer.address, stranger_keys, QUESTION, 30.0)
        assert "not on the syncer's list" in found.refusal
        until(lambda: both.syncer.refused["key"] >= 1)


@pytest.mark.parametrize("transport", ["tcp", "curve"])
def test_keys_on_one_side_only_are_named(transport: str) -> None:
    wrong = None if transport == "curve" else ClientKeys(make_keys(), make_keys().public)
    assert asked(transport, lambda question: FACTS, keys=wrong).trouble == NO_HANDSHAKE


def test_nobody_there_is_known_at_once_and_silence_after_the_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        began = time.monotonic()
        assert ask(f"tcp://127.0.0.1:{port}", None, QUESTION, 0.3).trouble == NOBODY
        assert time.monotonic() - began >= 0.3
    assert ask(f"tcp://127.0.0.1:{port}", None, QUESTION, 30.0).trouble == NOBODY


def test_who_answers_something_else_is_no_syncer() -> None:
    assert asking._understood([b"\x09\x09"], 0).refusal == asking.OTHER_VERSION
    for parts in ([b""], [frame(Frame.PING)], [frame(Frame.FACTS) + b"?"]):
        assert asking._understood(parts, 0).trouble == NO_HANDSHAKE


def test_questions_are_bounded_and_count_when_they_are_refused() -> None:
    with pair("tcp") as both, stranger(both) as client:
        client.send(CONTROL, frame(Frame.ASK, QUESTION))
        expect(both, "stranger")  # nobody answers questions here
        both.syncer.answer(lambda question: "no")
        client.send(CONTROL, frame(Frame.ASK, Ask(0, {"key": "x" * 70_000})))
        expect(both, "huge")
        client.send(CONTROL, frame(Frame.ASK) + b"?")
        expect(both, "garbled")
        client.send(CONTROL, frame(Frame.ASK, QUESTION))
        expect(both, "differs")
        still_works(both)


@pytest.mark.parametrize("noise", [b"POST /kill HTTP/1.1\r\n\r\n" * 9, b"\xff" * 64, b"\x80\x04\x95" * 400])
def test_what_has_no_handshake_is_counted(noise: bytes) -> None:
    for transport in ("tcp", "curve"):
        with pair(transport) as both:
            host, port = both.syncer.address.removeprefix("tcp://").split(":")
            with socket.create_connection((host, int(port))) as raw:
                raw.sendall(noise)
            until(lambda both=both: both.turn().syncer.refused["handshake"] == 1)  # type: ignore[misc]
            still_works(both)
