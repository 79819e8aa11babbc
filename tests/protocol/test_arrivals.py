"""PROTOCOL sections 5 and 6: records before effects, and what becomes of fragments and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.driving import MS, SECOND, Talk, begun, record
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol.actions import Append, Merge, Release, Send
from workbench.protocol.records import EVALUATOR, Kind, learner_of, process_of
from workbench.protocol.round_state import PullState

T = 2


def pulled(learners: int = 2, **keys: Any) -> Talk:
    """All learners are ready for the round and were pulled."""
    talk = begun(learners=learners, quorum=learners, **keys)
    for m in range(learners):
        talk.step(m, MS, g=2)
    assert talk.state_of(T) == "PULLING"
    return talk


def dropped(talk: Talk) -> list[tuple[int, str]]:
    return [(learner_of(r.peer), r.reason) for r in talk.of(Kind.FRAGMENT_DROPPED)]


def test_records_are_journalled_before_what_follows_from_them() -> None:
    talk = begun()
    puppet = talk.puppets[0]
    puppet.count_step()
    puppet.g = 2
    done = talk.says(0, puppet.metadata(), MS)
    assert isinstance(done[0], Append) and done[0].records[0].kind == Kind.STEP_ENDED
    assert any(isinstance(a, Send) and isinstance(a.message, msg.Pull) for a in done[1:])


def test_records_are_journalled_once_and_without_gaps() -> None:
    talk = begun()
    puppet = talk.puppets[0]
    puppet.count_step()
    again = list(puppet.unsent)
    talk.says(0, puppet.metadata())
    before = len(talk.records)
    talk.says(0, puppet.metadata(records=again))
    assert len(talk.records) == before
    puppet.count_step()
    puppet.count_step()
    first, second = puppet.unsent
    talk.says(0, puppet.metadata(records=[second]))
    assert talk.member(0).known_seq == first.seq - 1
    talk.says(0, puppet.metadata(records=[first, second]))
    assert talk.member(0).known_seq == second.seq


def test_a_message_whose_records_are_incomplete_has_no_effect_and_they_are_asked_for() -> None:
    talk = begun()
    puppet = talk.puppets[0]
    puppet.count_step()
    lost = puppet.attach()
    puppet.g = 2
    clock = talk.state.clock
    talk.says(0, puppet.metadata(), MS)
    assert talk.member(0).g == 0 and talk.state_of(T) == "OPEN"
    assert talk.state.clock == clock, "its clock is not heard either: it names what the journal lacks"
    (beat,) = talk.to(0, msg.Beat)
    assert beat.send_again and beat.acked == lost[0].seq - 1
    talk.says(0, puppet.metadata(), MS)
    assert len(talk.to(0, msg.Beat)) == 1, "asked once per half second"
    talk.says(0, puppet.metadata(records=lost), MS)
    assert talk.member(0).g == 2


def test_a_message_without_a_clock_entry_of_its_sender_is_complete() -> None:
    """A process that adopts its first state has no record yet, and its heart beats."""
    talk = Talk().start()
    puppet = talk.join(0)
    talk.says(0, msg.Heartbeat(0, puppet.incarnation, (1,), []))
    assert talk.member(0).last_heard == talk.now and not talk.to(0, msg.Beat)


def test_an_old_incarnations_records_come_with_the_present_one() -> None:
    talk = begun()
    puppet = talk.puppets[0]
    puppet.count_step()
    seq = puppet.seq
    talk.join(0)
    assert talk.member(0).known_seq == seq, "JOIN carries what is unacknowledged"
    assert talk.records[-1].kind != Kind.STEP_ENDED
    assert [r.incarnation for r in talk.of(Kind.STEP_ENDED) if r.process == process_of(0)][-1] == 1


def test_supervisor_and_evaluator_number_their_records_too() -> None:
    talk = begun()
    seen = [record(Kind.EVALUATED, EVALUATOR, seq, value=float(seq)) for seq in (1, 2, 3)]
    talk.give(ev.RecordsCame(EVALUATOR, seen[:1]))
    talk.give(ev.RecordsCame(EVALUATOR, seen))
    assert [r.seq for r in talk.of(Kind.EVALUATED)] == [1, 2, 3]
    assert talk.state.clock[EVALUATOR] == 3


def test_a_fragment_that_fits_is_used() -> None:
    talk = pulled()
    puppet = talk.puppets[0]
    talk.answer(0, T)
    (arrived,) = talk.of(Kind.FRAGMENT_ARRIVED)
    assert (arrived.round, arrived.fragment, arrived.base_version, arrived.step) == (T, 0, 0, puppet.n)
    assert (arrived.steps, arrived.tokens, arrived.reason) == (2, 200, "f32")
    assert arrived.cause == (process_of(0), puppet.seq)
    assert arrived.detail["bytes"] == 400 and list(talk.round(T).here) == [0]


@pytest.mark.parametrize(("changes", "seen", "reason"), [
    ({"base_version": 1}, {}, "stale"),
    ({}, {"fits": False}, "shape"),
    ({"codec": "bf16"}, {}, "shape"),
    ({}, {"finite": False}, "nonfinite"),
    ({"round": 4}, {}, "late"),
    ({"fragment": 1}, {}, "late"),
    ({"incarnation": 0}, {}, "incarnation"),
    ({"clock": (0, 0, 0, 99)}, {}, "records"),
])  # fmt: skip
def test_what_does_not_fit_is_dropped_with_the_reason(
    changes: dict[str, Any], seen: dict[str, Any], reason: str
) -> None:
    talk = pulled(period=4, fragments=2)
    puppet = talk.puppets[0]
    fragment = puppet.fragment(T, p=1, **changes) if "fragment" not in changes else puppet.fragment(T, p=0)
    talk.says(0, fragment, **seen)
    assert dropped(talk) == [(0, reason)]
    assert not talk.round(T).here
    assert [o.handle for o in talk.orders if isinstance(o, Release)] == [fragment.handle], "its payload is let go"


def test_guard_off_takes_what_is_not_finite() -> None:
    talk = pulled(guard_nonfinite=False)
    talk.answer(0, T, finite=False)
    assert list(talk.round(T).here) == [0]


def test_a_quarantined_learners_answer_is_dropped() -> None:
    talk = pulled(learners=3)
    talk.give(ev.QuarantineAsked(0, True, "page"))
    talk.answer(0, T)
    assert dropped(talk) == [(0, "quarantined")]


def test_late_is_after_the_round_merges_or_is_closed() -> None:
    talk = pulled()
    talk.give(ev.SettingsAsked({"quorum": 1}, "test"))
    talk.answer(0, T)
    talk.says(1, talk.puppets[1].refusal(T))
    assert talk.state_of(T) == "MERGING"
    talk.answer(1, T)
    talk.finish_round()
    talk.answer(1, T)
    assert dropped(talk) == [(1, "late"), (1, "late")]


def test_gone_is_what_a_declared_lost_learner_still_sends() -> None:
    talk = pulled()
    talk.answer(0, T)
    talk.pass_time(2.5, alive=(0,))
    fragment = talk.puppets[1].fragment(T)
    talk.says(1, fragment)
    assert dropped(talk) == [(1, "gone")]
    assert talk.to(1, msg.Welcome)[-1].rejoin


def test_a_second_fragment_of_a_learner_is_a_duplicate() -> None:
    talk = pulled()
    talk.answer(0, T)
    talk.answer(0, T)
    assert dropped(talk) == [(0, "duplicate")]
    assert not talk.member(0).blocked[0], "and says nothing against the learner"


def test_a_dropped_answer_frees_the_round_of_its_pull() -> None:
    talk = pulled()
    talk.answer(0, T, fits=False)
    assert talk.round(T).pulls[0].state == PullState.DROPPED and talk.round(T).left_out == {0: "shape"}
    talk.answer(1, T)
    talk.step(0, MS, g=3)
    assert len(talk.to(0, msg.Pull)) == 2, "after newer METADATA it is asked again, since the round needs it"
    talk.answer(0, T)
    assert next(o for o in talk.orders if isinstance(o, Merge)).learners == [0, 1]


def test_an_incomplete_fragment_may_be_asked_for_again() -> None:
    talk = pulled()
    puppet = talk.puppets[0]
    fragment = puppet.fragment(T)
    lost, fragment.records = fragment.records, []
    talk.says(0, fragment)
    assert dropped(talk) == [(0, "records")]
    puppet.unsent = [*lost, *puppet.unsent]
    talk.step(0, MS, g=3)
    talk.answer(0, T)
    assert list(talk.round(T).here) == [0]


def test_bad_numbers_are_asked_to_be_folded_anew_and_never_pulled_in_this_round_again() -> None:
    talk = pulled()
    talk.answer(0, T, finite=False)
    assert dropped(talk) == [(0, "nonfinite")] and talk.round(T).guarded == [0]
    assert talk.to(0, msg.Update)[-1].anew == 1
    talk.pass_time(0.3, alive=(0, 1))
    assert talk.state_of(T) == "READY"
    talk.fold(0, anew=1)
    talk.step(0, MS, g=3)
    assert len(talk.to(0, msg.Pull)) == 1
    assert talk.member(0).anew == [0]


# pulls as samples


def test_every_answer_is_a_sample() -> None:
    talk = pulled()
    talk.answer(0, T, after=80 * MS)
    assert talk.member(0).pull_ema == pytest.approx(80 * MS)
    talk.says(1, talk.puppets[1].refusal(T), 19 * MS)
    assert talk.member(1).pull_ema == pytest.approx(99 * MS)


def test_answers_to_a_round_that_is_closed_are_samples_too() -> None:
    """Else a learner whose pulls outlast the limit would be left out for ever: its limit would never grow."""
    talk = pulled()
    talk.give(ev.SettingsAsked({"quorum": 1}, "test"))
    talk.answer(0, T)
    talk.pass_time(0.3, alive=(0, 1))
    talk.finish_round()
    assert T not in talk.state.rounds
    asked = talk.member(1).asked[T]
    talk.answer(1, T, after=150 * MS)
    assert talk.member(1).pull_ema == talk.now - asked > 0.4 * SECOND
    assert not talk.member(1).asked


def test_answers_of_another_incarnation_are_none() -> None:
    talk = pulled()
    talk.join(0)
    talk.says(0, talk.puppets[0].refusal(T))
    assert talk.member(0).pull_ema == -1.0


# of what learners are told


def test_a_syncer_message_that_comes_to_the_syncer_is_nothing() -> None:
    talk = begun()
    before = len(talk.records)
    talk.give(ev.Received(1, msg.Beat(1, 0, 1, ())))
    assert len(talk.records) == before
