"""PROTOCOL section 10: what runs out, the machine's own stop, and the syncer's heartbeat."""

from __future__ import annotations

import pytest

from tests.protocol.driving import MS, SECOND, Talk, begun
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol.records import Kind, learner_of, process_of

T = 2


def losses(talk: Talk) -> list[tuple[int, str]]:
    return [(learner_of(r.peer), r.reason) for r in talk.of(Kind.LEARNER_LOST)]


def test_gone_is_the_first_of_exit_socket_and_silence() -> None:
    talk = begun(learners=3)
    talk.exits(0)
    talk.give(ev.Disconnected(talk.puppets[0].connection))
    talk.give(ev.Disconnected(talk.puppets[1].connection))
    talk.exits(1)
    talk.pass_time(1.9)
    assert losses(talk) == [(0, "exit"), (1, "socket")]
    talk.pass_time(0.2)
    assert losses(talk) == [(0, "exit"), (1, "socket"), (2, "heartbeat")]


def test_a_heartbeat_keeps_a_learner_for_the_limit() -> None:
    """REPORTED Q22: one `learner_lost` within the limit, and only one."""
    talk = begun(heartbeat_limit_s=2.0)
    at = talk.now
    talk.pass_time(30.0, alive=(0,))
    (lost,) = talk.of(Kind.LEARNER_LOST)
    assert (learner_of(lost.peer), lost.reason) == (1, "heartbeat")
    assert 2.0 <= (lost.time_ns - at) / SECOND <= 2.01


def test_a_machine_woken_late_moves_all_its_times_by_the_gap() -> None:
    talk = begun(quorum=2, grace="fixed", grace_s=1.0, learners=3)
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    round_ = talk.round(T)
    wake, before = talk.machine.wake_at, (round_.quorum_at, talk.member(0).last_heard, talk.member(2).metadata_at)
    talk.now = wake + 5 * SECOND
    talk.give(ev.Woken())
    (stopped,) = talk.of(Kind.SELF_STOPPED)
    assert stopped.value == pytest.approx(5.0)
    after = (round_.quorum_at, talk.member(0).last_heard, talk.member(2).metadata_at)
    assert [b - a for a, b in zip(before, after, strict=True)] == [5 * SECOND] * 3
    assert not losses(talk) and not talk.of(Kind.LEARNER_STALLED) and talk.state_of(T) == "GRACE"


def test_every_time_that_the_syncer_holds_moves() -> None:
    talk = begun(quorum=2, pull_limit_min_s=1.5)
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    talk.state.sync_since[0] = 11
    until, asked = talk.round(T).pull_until, dict(talk.member(0).asked)
    sent = talk.round(T).pulls[0].sent_at
    gap = 3 * SECOND
    talk.now = talk.machine.wake_at + gap
    talk.give(ev.Woken())
    assert talk.round(T).pull_until == until + gap and talk.state_of(T) == "PULLING"
    assert talk.member(0).asked == {t: at + gap for t, at in asked.items()}
    assert talk.round(T).pulls[0].sent_at == sent + gap and talk.state.sync_since == [11 + gap]


def test_after_a_stop_of_its_own_the_syncer_takes_what_lies_at_its_door_before_it_calls_a_learner_silent() -> None:
    talk = begun(heartbeat_limit_s=2.0)
    talk.pass_time(1.999, alive=(0,))  # learner 1 is one ms from being lost, and then the syncer is stopped
    talk.now = talk.machine.wake_at + 3 * SECOND
    talk.give(ev.Woken())
    assert talk.of(Kind.SELF_STOPPED) and not losses(talk)
    woken = talk.now
    talk.pass_time(0.6, alive=(0,))
    (lost,) = talk.of(Kind.LEARNER_LOST)
    assert learner_of(lost.peer) == 1 and lost.time_ns - woken >= SECOND // 2


def test_half_a_second_is_not_a_stop() -> None:
    talk = begun()
    talk.now = talk.machine.wake_at + SECOND // 2
    talk.give(ev.Woken())
    assert not talk.of(Kind.SELF_STOPPED)


def test_a_learner_whose_heart_beats_but_that_makes_no_step_is_stalled_and_out_of_k() -> None:
    """REPORTED Q25: flagged after 3 median steps."""
    talk = begun(quorum=2)
    talk.puppets[0].step_ns = talk.puppets[1].step_ns = SECOND
    for m in (0, 1):
        for _ in range(3):
            talk.step(m, g=0)
    talk.step(0, g=2)
    talk.pass_time(2.9, alive=(0, 1))
    assert not talk.of(Kind.LEARNER_STALLED)
    talk.step(1, g=0)
    talk.pass_time(0.2, alive=(0, 1))
    (stalled,) = talk.of(Kind.LEARNER_STALLED)
    assert learner_of(stalled.peer) == 0 and stalled.value == pytest.approx(3.0, abs=0.01)
    talk.pass_time(1.0, alive=(0, 1))
    assert len(talk.of(Kind.LEARNER_STALLED)) == 1, "said once"
    talk.step(1, g=2)
    assert talk.state_of(T) == "READY" and not talk.of(Kind.QUORUM_REACHED), "it is ready no more"
    talk.step(0, g=2)
    assert not talk.member(0).stalled and talk.state_of(T) == "PULLING"


def test_a_learner_that_rejoined_and_then_sends_no_metadata_is_stalled_from_then_on() -> None:
    talk = begun()
    talk.pass_time(2.5, alive=(1,))
    talk.puppets[0].unsent = []
    talk.says(0, talk.puppets[0].heartbeat())
    talk.puppets[0].incarnation = 2
    stalled = [r for r in talk.of(Kind.LEARNER_STALLED) if learner_of(r.peer) == 0]
    talk.member(0).stalled = False
    talk.pass_time(1.1, alive=(0, 1))
    now = [r for r in talk.of(Kind.LEARNER_STALLED) if learner_of(r.peer) == 0]
    assert len(now) == len(stalled) + 1 and now[-1].value == pytest.approx(1.0, abs=0.1)


def test_rounds_begin_at_the_start_limit_with_those_who_are_there() -> None:
    """REPORTED Q15: with fewer than K it says so."""
    talk = Talk(learners=2, quorum=2, start_limit_s=3.0).start()
    talk.join(0)
    talk.pass_time(2.9, alive=(0,))
    assert not talk.of(Kind.ROUNDS_BEGAN)
    talk.pass_time(0.2, alive=(0,))
    (began,) = talk.of(Kind.ROUNDS_BEGAN)
    assert (began.value, began.reason) == (1.0, "start_limit") and began.time_ns == 3 * SECOND
    assert [r.detail["missing"] for r in talk.of(Kind.QUORUM_LOST)] == [["L1"]]


def test_nobody_there_at_the_start_limit_waits_for_the_first() -> None:
    talk = Talk(start_limit_s=1.0).start()
    talk.pass_time(5.0)
    assert not talk.state.began
    talk.join(0)
    assert talk.state.began


def test_who_does_not_leave_is_waited_for_no_longer_than_the_heartbeat_limit() -> None:
    talk = begun()
    talk.give(ev.StopAsked("asked"))
    talk.pass_time(2.1, alive=(0, 1))
    assert [r.reason for r in talk.of(Kind.RUN_ENDED)] == ["asked"]


def test_the_syncers_heartbeat_acknowledges_records() -> None:
    talk = begun()
    talk.step(0)
    talk.pass_time(0.6)
    beat = talk.to(0, msg.Beat)[-1]
    assert beat.acked == talk.puppets[0].seq and not beat.send_again
    assert process_of(0) == 3
