"""PROTOCOL section 6: records are carried once per channel and connection, and kept until acknowledged."""

from __future__ import annotations

import pytest

from tests.protocol.driving import SECOND, STEP_NS, Alone, record
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol import outbox
from workbench.protocol.learner_state import Outbox
from workbench.protocol.messages import BULK, CONTROL
from workbench.protocol.records import Kind


def filled(count: int, first: int = 1) -> Outbox:
    box = Outbox(acked=first - 1)
    outbox.rewind(box)
    for seq in range(first, first + count):
        outbox.put(box, record(Kind.STEP_ENDED, 3, seq), now=seq)
    return box


def seqs(box: Outbox, channel: int) -> list[int]:
    return [r.seq for r in outbox.take(box, channel)]


def test_each_channel_carries_each_record_once() -> None:
    box = filled(3)
    assert seqs(box, CONTROL) == [1, 2, 3] and seqs(box, CONTROL) == []
    outbox.put(box, record(Kind.STEP_ENDED, 3, 4), 4)
    assert seqs(box, CONTROL) == [4]
    assert seqs(box, BULK) == [1, 2, 3, 4]


def test_what_is_acknowledged_is_let_go_and_not_carried() -> None:
    box = filled(4)
    outbox.acknowledge(box, 2, now=9)
    assert [r.seq for r in box.unacked] == [3, 4] and box.progress_at == 9
    assert seqs(box, BULK) == [3, 4]
    outbox.acknowledge(box, 1, now=10)
    assert box.acked == 2, "acknowledgements never go back"


def test_another_connection_carries_everything_unacknowledged_again() -> None:
    box = filled(3)
    outbox.take(box, CONTROL)
    outbox.acknowledge(box, 1, now=5)
    outbox.rewind(box)
    assert seqs(box, CONTROL) == [2, 3]


def test_numbers_that_begin_later_work_alike() -> None:
    box = filled(3, first=41)
    assert seqs(box, CONTROL) == [41, 42, 43]
    outbox.acknowledge(box, 42, now=1)
    assert [r.seq for r in box.unacked] == [43] and seqs(box, BULK) == [43]


@pytest.mark.parametrize(("silent", "carried"), [(100, []), (101, [1, 2])])
def test_silence_carries_everything_again(silent: int, carried: list[int]) -> None:
    box = filled(2)
    outbox.take(box, CONTROL)
    outbox.rewind_when_silent(box, box.progress_at + silent, 100)
    assert seqs(box, CONTROL) == carried


def test_the_patience_starts_with_the_first_record_that_waits() -> None:
    box = Outbox()
    outbox.put(box, record(Kind.STEP_ENDED, 3, 1), now=500)
    outbox.put(box, record(Kind.STEP_ENDED, 3, 2), now=900)
    assert box.progress_at == 500


# in the machine


def test_every_message_carries_what_its_channel_has_not_and_join_carries_all() -> None:
    alone = Alone().healed()
    carried = [r.seq for m in alone.of(msg.Metadata) for r in m.records]
    assert carried == list(range(1, alone.state.seq + 1))
    fragment = alone.contribute(2)
    assert [r.seq for r in fragment.records] == list(range(1, alone.state.seq + 1)), "bulk carries its own"
    assert fragment.records[-1].kind == Kind.FRAGMENT_CAPTURED and fragment.origin == alone.state.seq
    alone.give(ev.Disconnected(1))
    alone.give(ev.Connected(2))
    join = alone.of(msg.Join)[-1]
    assert [r.seq for r in join.records] == list(range(1, alone.state.seq + 1)), "its own older records included"


def test_records_are_numbered_and_carry_their_incarnation() -> None:
    alone = Alone().healed(steps=3)
    kept = alone.state.outbox.unacked
    assert [r.seq for r in kept] == list(range(1, len(kept) + 1))
    assert {(r.process, r.incarnation) for r in kept} == {(3, 1)}


def test_the_syncer_asks_again_or_is_silent() -> None:
    alone = Alone().healed()
    alone.hears(alone.beat(acked=2))
    assert alone.state.outbox.unacked[0].seq == 3
    alone.hears(alone.beat(acked=2, send_again=True))
    alone.step()
    assert [r.seq for r in alone.of(msg.Metadata)[-1].records] == list(range(3, alone.state.seq + 1))
    for _ in range(12):
        alone.hears(alone.beat(acked=2), STEP_NS)
    assert alone.of(msg.Heartbeat)[-1].records[0].seq == 3, "no acknowledgement for a second"
    assert alone.now > SECOND
