"""The syncer machine as a whole: when it wants to be woken, that it is a function of its inputs, and its records."""

from __future__ import annotations

import msgspec

from tests.protocol.driving import MS, SECOND, Talk, begun, book_of, config_of, fixed_of
from workbench.protocol import events as ev
from workbench.protocol.actions import Action
from workbench.protocol.records import SYNCER, Kind
from workbench.protocol.syncer import SyncerMachine, new_state
from workbench.protocol.syncer_state import SyncerState

T = 2


def test_it_starts_with_a_record_and_waits() -> None:
    talk = Talk(start_limit_s=7.0).start()
    (started,) = talk.of(Kind.SYNCER_STARTED)
    assert (started.reason, started.seq, started.incarnation) == ("new", 1, 1)
    assert talk.state.start_until == 7 * SECOND and talk.machine.wake_at == SECOND // 2


def test_it_wants_to_be_woken_at_the_earliest_that_may_be_due() -> None:
    talk = begun(grace="fixed", grace_s=0.2)
    assert talk.machine.wake_at == SECOND // 2, "its heartbeat"
    talk.step(0, MS, g=2)
    assert talk.machine.wake_at == talk.now + SECOND // 5, "the end of grace"
    talk.pass_time(0.21)
    assert talk.machine.wake_at == talk.round(T).pull_until, "the pull limit"
    talk.answer(0, T)
    assert talk.machine.wake_at == SECOND // 2


def test_stalls_and_silence_are_due_to_the_nanosecond() -> None:
    talk = begun(heartbeat_s=0.9, heartbeat_limit_s=1.8)
    talk.pass_time(0.95)
    assert talk.machine.wake_at == SECOND + 1, "METADATA of time 0 counts for a second"
    talk.pass_time(0.06)
    assert {r.time_ns for r in talk.of(Kind.LEARNER_STALLED)} == {SECOND + 1}
    talk.pass_time(1.0)
    assert {r.time_ns for r in talk.of(Kind.LEARNER_LOST)} == {int(1.8 * SECOND)}


def test_it_is_never_woken_in_the_past() -> None:
    talk = begun()
    for _ in range(50):
        talk.step(0, 10 * MS)
        assert talk.machine.wake_at > talk.now


def test_its_records_are_numbered_and_clocked() -> None:
    talk = begun()
    talk.step(0, MS, g=2)
    talk.answer(0, T)
    talk.finish_round()
    own = [r for r in talk.records if r.process == SYNCER]
    assert [r.seq for r in own] == list(range(1, len(own) + 1))
    assert all(r.clock[SYNCER] == r.seq for r in own)
    arrived = talk.of(Kind.FRAGMENT_ARRIVED)[0]
    captured = talk.of(Kind.FRAGMENT_CAPTURED)[0]
    assert arrived.clock[captured.process] >= captured.seq, "what it received lies before it"


def test_the_same_inputs_give_the_same_actions() -> None:
    """Section 15, 13: the machine re-run on its recorded inputs gives its recorded outputs."""

    def run() -> tuple[list[bytes], bytes]:
        encode = msgspec.msgpack.Encoder().encode
        machine = SyncerMachine(new_state(fixed_of(config_of()), book_of(config_of())))
        talk = Talk(machine).start()
        seen: list[bytes] = []
        handle = machine.handle

        def watched(now: int, event: ev.SyncerInput) -> list[Action]:
            done = handle(now, event)
            seen.append(encode([now, event, done]))
            return done

        machine.handle = watched  # type: ignore[method-assign, assignment]
        for m in (0, 1):
            talk.join(m)
            talk.heal(m, MS)
        talk.step(0, MS, g=2)
        talk.answer(0, T)
        talk.finish_round()
        talk.pass_time(3.0, alive=(0,))
        return seen, encode(talk.state)

    assert run() == run()


def test_its_state_is_plain_data() -> None:
    talk = begun(quorum=2, period=4, fragments=4, overlap=2)
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    talk.answer(0, 1, 1)
    stored = msgspec.msgpack.encode(talk.state)
    again = msgspec.msgpack.decode(stored, type=SyncerState)
    assert msgspec.msgpack.encode(again) == stored
    assert sorted(again.rounds) == [1, 2] and list(again.rounds[1].here) == [0]


def test_members_and_rounds_are_looked_at_in_order() -> None:
    talk = Talk(learners=4).start()
    for m in (3, 0, 2, 1):
        talk.join(m)
    assert list(talk.state.members) == [0, 1, 2, 3]
    for m in (3, 0, 2, 1):
        talk.heal(m)
    talk.step(3, MS, g=2)
    assert talk.of(Kind.GRACE_ENDED)[0].detail["admitted"] == [3]


def test_a_syncer_that_dies_again_and_again_is_one_run() -> None:
    talk = begun()
    talk.step(0, MS, g=2)
    talk.answer(0, T)
    talk.finish_round()
    for life in range(2, 6):
        talk = talk.restarted()
        assert talk.state.incarnation == life
        talk.join(0)
        talk.join(1)
        assert talk.member(0).incarnation == life
    talk.fold(0)
    talk.step(0, MS, g=4)
    talk.answer(0, 4)
    talk.finish_round()
    assert [r.version for r in talk.of(Kind.MERGED)] == [1, 2]
    assert talk.now < SECOND
