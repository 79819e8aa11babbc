"""What is said of those who were turned away, and when."""

from __future__ import annotations

from collections import Counter

import zmq

from workbench.engine.door import SAY_EVERY_S, DoorLog, Handshakes


def test_the_first_refusal_is_said_at_once_the_next_later_and_together() -> None:
    log, refused = DoorLog(), Counter({"key": 1})
    assert (
        log.line(refused, "a key, from 10.0.0.7", 0.0)
        == "refused: 1 keys that are not on the list; the last: a key, from 10.0.0.7"
    )
    refused["key"] += 1000
    refused["garbled"] += 5
    assert log.line(refused, "", SAY_EVERY_S / 2) == ""
    assert log.line(refused, "", SAY_EVERY_S) == "refused: 5 frames that are none, 1000 keys that are not on the list"
    assert log.line(refused, "", 9 * SAY_EVERY_S) == ""


def test_a_connection_without_a_handshake_is_counted_when_it_ends() -> None:
    doors = Handshakes()
    assert doors.take([(zmq.EVENT_ACCEPTED, 5), (zmq.EVENT_ACCEPTED, 6)]) == (False, 0)
    assert doors.take([(zmq.EVENT_HANDSHAKE_SUCCEEDED, 0)]) == (False, 0)
    assert doors.take([(zmq.EVENT_DISCONNECTED, 6)]) == (True, 0)
    assert doors.take([(zmq.EVENT_DISCONNECTED, 5)]) == (True, 1)


def test_a_refused_key_is_counted_by_the_list_alone() -> None:
    doors = Handshakes()
    events = [(zmq.EVENT_ACCEPTED, 5), (zmq.EVENT_HANDSHAKE_FAILED_AUTH, 400), (zmq.EVENT_DISCONNECTED, 5)]
    assert doors.take(events) == (True, 0)
