"""PROTOCOL section 2: a round from OPEN to its end, and section 5: what becomes of its PULLs."""

from __future__ import annotations

import pytest

from tests.protocol.driving import MS, SECOND, Talk, begun
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol import rounds
from workbench.protocol.actions import Merge
from workbench.protocol.records import Kind, learner_of, process_of
from workbench.protocol.round_state import PullState

T = 2
"""The first round of the small run: one fragment, due at every second step."""


def admitted(talk: Talk) -> list[list[int]]:
    return [r.detail["admitted"] for r in talk.of(Kind.GRACE_ENDED)]


def test_every_state_in_order() -> None:
    talk = begun(quorum=2, grace="fixed", grace_s=0.3)
    assert talk.state_of(T) == "OPEN"
    talk.step(0, MS, g=2)
    assert talk.state_of(T) == "READY"
    assert [learner_of(r.peer) for r in talk.of(Kind.ROUND_READY)] == [0]
    talk.join(2)
    talk.heal(2, MS)  # clean, and far behind
    talk.member(2).metadata_at = 0  # heard of before the first was ready: not fresh, so that grace has to run
    talk.step(1, MS, g=2)
    assert talk.state_of(T) == "GRACE"
    assert [r.value for r in talk.of(Kind.QUORUM_REACHED)] == [0.3]
    talk.pass_time(0.31)
    assert talk.state_of(T) == "PULLING"
    talk.answer(0, T)
    assert talk.state_of(T) == "PULLING"
    talk.answer(1, T)
    assert talk.state_of(T) == "MERGING"
    talk.merged()
    assert talk.state_of(T) == "COMMITTING"
    assert talk.state.versions == [0], "a merge that is not committed is nobody's version"
    talk.committed()
    assert talk.state.versions == [1] and T not in talk.state.rounds
    assert [r.version for r in talk.of(Kind.MERGED, Kind.MERGE_COMMITTED)] == [1, 1]


def test_fewer_than_k_ready_during_grace_goes_back_and_grace_runs_anew() -> None:
    talk = begun(quorum=2, learners=3, grace="fixed", grace_s=1.0)
    talk.step(0, MS, g=2)
    first_ready = talk.round(T).first_ready_at
    talk.step(1, MS, g=2)
    assert talk.state_of(T) == "GRACE"
    talk.pass_time(0.5, alive=(0, 1, 2))
    talk.exits(1)
    assert talk.state_of(T) == "READY" and talk.round(T).first_ready_at == first_ready
    talk.step(0, g=2)
    talk.step(2, MS, g=2)
    assert talk.state_of(T) == "PULLING", "all clean learners are admitted: grace ends at once"
    assert [r.value for r in talk.of(Kind.QUORUM_REACHED)] == [1.0, 1.0]
    assert talk.round(T).first_ready_at == first_ready


def test_grace_ends_at_once_when_every_clean_learner_is_admitted() -> None:
    talk = begun(grace="fixed", grace_s=5.0)
    talk.step(0, MS, g=2)
    assert talk.state_of(T) == "GRACE"
    talk.step(1, MS)  # behind, but heard of since the first was ready
    assert talk.state_of(T) == "PULLING"
    assert admitted(talk) == [[0, 1]]
    assert [r.reason for r in talk.of(Kind.GRACE_ENDED)] == ["all_admitted"]


def test_grace_that_is_over_pulls_who_is_admitted_and_says_who_is_left_out() -> None:
    talk = begun(grace="fixed", grace_s=0.2)
    talk.step(0, MS, g=2)
    talk.pass_time(0.25)
    (ended,) = talk.of(Kind.GRACE_ENDED)
    assert (ended.reason, ended.detail["admitted"], ended.detail["left_out"]) == ("over", [0], {1: "not_fresh"})
    assert ended.value == pytest.approx(0.2)


def test_pulls_that_stay_out_still_count_when_they_come() -> None:
    """PULLING with fewer than K at the limit: back to READY; what is here stays, the rest may still come."""
    talk = begun(learners=3, quorum=2)
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    assert talk.state_of(T) == "PULLING" and sorted(talk.round(T).pulls) == [0, 1]
    talk.answer(0, T)
    talk.pass_time(0.3, alive=(0, 1, 2))
    assert talk.state_of(T) == "READY"
    assert list(talk.round(T).here) == [0]
    talk.step(0, MS, g=3)
    assert len(talk.to(0, msg.Pull)) == 1, "one whose fragment is here is not pulled again"
    talk.step(1, MS, g=3)
    assert len(talk.to(1, msg.Pull)) == 1, "nor one that has not answered"
    talk.answer(1, T, after=MS)
    assert talk.state_of(T) == "MERGING", "the outstanding fragment came, and there are K"
    assert next(o for o in talk.orders if isinstance(o, Merge)).learners == [0, 1]


def test_another_ready_learner_steps_in() -> None:
    talk = begun(learners=3, quorum=2)
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    talk.answer(0, T)
    talk.pass_time(0.3, alive=(0, 1, 2))
    talk.step(2, MS, g=2)
    assert talk.state_of(T) == "PULLING" and sorted(talk.round(T).pulls) == [0, 1, 2]
    talk.answer(2, T)
    assert talk.state_of(T) == "PULLING", "learner 1 is still within the pull limit of this PULLING"
    talk.pass_time(0.3, alive=(0, 1, 2))
    assert talk.state_of(T) == "MERGING"
    assert next(o for o in talk.orders if isinstance(o, Merge)).learners == [0, 2]
    assert talk.round(T).left_out == {1: "pull_limit"}


def test_the_rest_is_left_to_the_pull_limit_when_k_are_here() -> None:
    talk = begun(learners=2, quorum=1)
    talk.step(0, MS, g=2)
    talk.step(1, 0, g=2)
    assert sorted(talk.round(T).pulls) == [0]
    talk = begun(learners=2, quorum=2)
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    talk.give(ev.SettingsAsked({"quorum": 1}, "test"))
    talk.answer(0, T)
    assert talk.state_of(T) == "PULLING"
    talk.pass_time(0.26, alive=(0, 1))
    assert talk.state_of(T) == "MERGING"
    assert talk.round(T).pulls[1].state == PullState.LIMIT
    talk.answer(1, T)
    assert talk.of(Kind.FRAGMENT_DROPPED)[-1].reason == "pull_limit"


def test_a_pull_that_nobody_answers_while_the_quorum_lacks_it_ends_the_connection() -> None:
    """After max(2 heartbeat limits, 8 x its pull average) it is lost, and joins again as another incarnation."""
    talk = begun(learners=2, quorum=2)
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    talk.answer(0, T)
    talk.pass_time(3.9, alive=(0, 1))
    assert not talk.of(Kind.LEARNER_LOST)
    talk.pass_time(1.0, alive=(0, 1))
    (lost,) = talk.of(Kind.LEARNER_LOST)
    assert (learner_of(lost.peer), lost.reason) == (1, "unanswered")
    welcome = talk.to(1, msg.Welcome)[-1]
    assert welcome.incarnation == 2 and welcome.rejoin
    talk.puppets[1].incarnation = 2
    talk.step(1, MS, g=3)
    assert len(talk.to(1, msg.Pull)) == 2
    assert talk.member(1).unanswered == 1
    talk.answer(1, T)
    assert talk.state_of(T) == "MERGING" and talk.member(1).unanswered == 0


def test_the_patience_doubles_until_an_answer_comes() -> None:
    """A fragment that takes longer than the limit was asked for again for ever, and never used."""
    talk = begun(learners=2, quorum=2)
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    talk.answer(0, T)
    for waited in (4, 8, 16):
        at = talk.now
        talk.pass_time(waited + 1.1, alive=(0, 1))
        lost = talk.of(Kind.LEARNER_LOST)[-1]
        assert waited <= (lost.time_ns - at) / SECOND < waited + 1
        talk.puppets[1].incarnation += 1
        talk.step(1, MS)
    assert [r.reason for r in talk.of(Kind.LEARNER_LOST)] == ["unanswered"] * 3


def test_a_lost_pull_is_found_though_grace_began_again_meanwhile() -> None:
    """A learner that stepped in and died left the unanswered PULL without a limit: the round hung for ever."""
    talk = begun(learners=4, quorum=2, grace="fixed", grace_s=0.05)
    talk.member(3).quarantined = True
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    talk.pass_time(0.06, alive=(0, 1, 2, 3))
    talk.answer(0, T)
    talk.pass_time(0.3, alive=(0, 1, 2, 3))
    assert talk.state_of(T) == "READY" and talk.round(T).pulls[1].state == PullState.OUTSTANDING
    talk.give(ev.QuarantineAsked(3, False, "test"))
    talk.says(3, talk.puppets[3].metadata(), MS)  # clean and not ready: grace has somebody to wait for
    talk.member(3).metadata_at = 0
    talk.step(2, MS, g=2)
    assert talk.state_of(T) == "GRACE"
    talk.exits(2)
    assert talk.state_of(T) == "READY"
    talk.pass_time(4.6, alive=(0, 1, 3))
    lost = [(learner_of(r.peer), r.reason) for r in talk.of(Kind.LEARNER_LOST)]
    assert lost == [(2, "exit"), (1, "unanswered")]


def test_a_learner_that_dies_while_pulled_is_gone_and_another_may_come() -> None:
    talk = begun(learners=3, quorum=2)
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    talk.answer(0, T)
    talk.exits(1)
    assert talk.round(T).pulls[1].state == PullState.GONE and talk.round(T).left_out[1] == "gone"
    assert talk.state_of(T) == "READY"
    talk.step(2, MS, g=2)
    talk.answer(2, T)
    assert next(o for o in talk.orders if isinstance(o, Merge)).learners == [0, 2]


def test_a_refusal_ends_the_wait_for_that_learner() -> None:
    talk = begun(quorum=2)
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    talk.answer(0, T)
    talk.says(1, talk.puppets[1].refusal(T))
    assert talk.state_of(T) == "READY" and talk.round(T).pulls[1].state == PullState.REFUSED
    (refusal,) = talk.of(Kind.REFUSAL_ARRIVED)
    assert (refusal.reason, refusal.cause) == ("no_steps", (process_of(1), talk.puppets[1].seq))
    talk.step(1, MS, g=3)
    assert len(talk.to(1, msg.Pull)) == 2, "after newer METADATA it may be asked again"


def test_at_most_max_1_tau_rounds_of_distinct_fragments_in_order_of_t() -> None:
    for tau, expected in ((0, [1]), (1, [1]), (2, [1, 2]), (3, [1, 2, 3])):
        talk = begun(period=4, fragments=4, overlap=tau)
        assert sorted(talk.state.rounds) == expected
        assert len({r.p for r in talk.state.rounds.values()}) == len(expected)
    talk = begun(period=4, fragments=2, overlap=3)
    assert [(r.round, r.fragment) for r in talk.of(Kind.ROUND_OPENED)] == [(2, 1), (4, 0)]
    assert len(talk.state.rounds) == 2, "P = 2 <= tau: a third round would be of a fragment in flight"


def test_rounds_are_open_ahead_of_being_due_and_later_ones_may_close_first() -> None:
    talk = begun(period=4, fragments=4, overlap=2)
    talk.step(0, MS, g=2)
    assert {t: talk.state_of(t) for t in talk.state.rounds} == {1: "PULLING", 2: "PULLING"}
    talk.answer(0, 2, p=2)
    talk.finish_round()
    assert sorted(talk.state.rounds) == [1, 3]
    assert talk.state.closed_below == 1, "the oldest round that is not closed"
    talk.answer(0, 1, p=1)
    talk.finish_round()
    assert talk.state.closed_below == 3


def test_a_learner_is_at_most_once_in_a_round_whatever_its_incarnation() -> None:
    talk = begun(quorum=2)
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    talk.answer(0, T)
    talk.join(0)
    talk.step(0, MS, g=3)
    assert talk.puppets[0].incarnation == 2
    assert len([r for r in talk.of(Kind.PULL_SENT) if learner_of(r.peer) == 0]) == 1
    talk.answer(0, T)
    assert talk.of(Kind.FRAGMENT_DROPPED)[-1].reason == "duplicate"
    talk.answer(1, T)
    assert next(o for o in talk.orders if isinstance(o, Merge)).learners == [0, 1]


def test_a_pull_names_incarnation_base_and_codec() -> None:
    talk = begun()
    talk.join(0)
    talk.step(0, MS, g=2)
    (pull,) = talk.to(0, msg.Pull)
    assert (pull.incarnation, pull.round, pull.fragment, pull.base_version, pull.codec) == (2, T, 0, 0, "f32")
    (sent,) = talk.of(Kind.PULL_SENT)
    assert (learner_of(sent.peer), sent.round, sent.fragment, sent.base_version) == (0, T, 0, 0)
    assert pull.origin == sent.seq, "recorded before it is sent"


def test_the_base_of_a_pull_is_that_of_the_latest_metadata() -> None:
    talk = begun(anchor="base")
    talk.state.versions[0] = 1
    talk.step(0, MS, g=2)
    assert [p.base_version for p in talk.to(0, msg.Pull)] == [0]
    talk.answer(0, T)
    assert next(o for o in talk.orders if isinstance(o, Merge)).base_versions == [0]


def test_the_pull_limit_is_read_from_all_pulled_and_counted_from_the_end_of_grace() -> None:
    talk = begun(quorum=2)
    talk.member(1).pull_ema = 0.2 * SECOND
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    assert talk.round(T).pull_until == talk.now + int(0.8 * SECOND)


def test_unanswered_pulls_are_remembered_up_to_a_bound() -> None:
    talk = begun()
    member = talk.member(0)
    for t in range(2 * rounds.ASKED_KEPT):
        rounds.note_asked(member, t, t)
    assert len(member.asked) == rounds.ASKED_KEPT and min(member.asked) == rounds.ASKED_KEPT
