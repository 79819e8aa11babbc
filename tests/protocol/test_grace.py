"""PROTOCOL sections 4 and 5: how long a round waits, the averages that it waits by, and the pull limit."""

from __future__ import annotations

import pytest

from tests.protocol.driving import MS, SECOND, STEP_NS, Talk, begun
from workbench.protocol import admission, averages
from workbench.protocol import events as ev
from workbench.protocol.admission import adaptive_window_s
from workbench.protocol.records import Kind

T = 2


@pytest.mark.parametrize(("step", "quorum", "sync", "cap", "window"), [
    (1.0, 0.1, 0.4, 1.0, 1.0), (1.0, 0.1, 0.4, 9.0, 1.2), (1.0, 1.5, 0.6, 1.0, 0.0),
])  # fmt: skip
def test_adaptive_window_of_the_published_rule(
    step: float, quorum: float, sync: float, cap: float, window: float
) -> None:
    assert adaptive_window_s(2, step, quorum, sync, 0.8, cap) == pytest.approx(window)


def test_adaptive_window_reads_the_averages_and_the_policy() -> None:
    talk = begun(period=4, fragments=4, overlap=2, grace="adaptive", grace_gamma=0.8, grace_cap_steps=1.0)
    state = talk.state
    for member in state.members.values():
        member.step_ema = float(SECOND)
    state.xi_quorum, state.xi_sync = 0.1 * SECOND, 0.4 * SECOND
    assert admission.adaptive_grace(state) == SECOND
    state.book.policy.grace_cap_steps = 5.0
    assert admission.adaptive_grace(state) == int(1.2 * SECOND)
    state.book.policy.grace_gamma = 0.5
    assert admission.adaptive_grace(state) == int(0.75 * SECOND)


def test_the_defaults_are_adaptive_gamma_08_and_a_cap_of_one_and_a_half_steps() -> None:
    policy = Talk(grace="adaptive").state.book.policy
    assert (policy.grace, policy.grace_gamma, policy.grace_cap_steps, policy.eligibility) == (
        "adaptive",
        0.8,
        1.5,
        "fresh",
    )


def test_none_fixed_all() -> None:
    state = begun(grace_s=0.7).state
    assert admission.GRACE["none"](state) == 0
    assert admission.GRACE["fixed"](state) == int(0.7 * SECOND)
    talk = begun(grace="all")
    talk.step(0, MS, g=2)
    talk.pass_time(0.9)
    assert talk.state_of(T) == "GRACE"
    assert talk.of(Kind.QUORUM_REACHED)[0].value == -1.0
    talk.step(1, MS)
    assert talk.of(Kind.GRACE_ENDED)[0].detail["admitted"] == [0, 1]


def test_all_waits_for_clean_learners_only() -> None:
    talk = begun(grace="all")
    talk.step(0, MS, g=2)
    talk.exits(1)
    assert talk.state_of(T) == "PULLING"


def test_xi_step_is_the_median_over_progressing_learners() -> None:
    talk = begun(learners=3)
    for member, ema in zip(talk.state.members.values(), (1.0, 2.0, 9.0), strict=True):
        member.step_ema = ema
    assert admission.xi_step_ns(talk.state) == 2.0
    talk.member(2).stalled = True
    assert admission.xi_step_ns(talk.state) == 1.5
    talk.member(1).connected = False
    assert admission.xi_step_ns(talk.state) == 1.0


def test_averages_take_the_first_sample_whole_and_an_eighth_of_the_next() -> None:
    talk = begun()
    state, member = talk.state, talk.member(0)
    state.xi_quorum_known = state.xi_sync_known = False
    averages.sample_quorum(state, 800)
    averages.sample_sync(state, 80)
    assert (state.xi_quorum, state.xi_sync) == (800.0, 80.0)
    averages.sample_quorum(state, 0)
    averages.sample_sync(state, 0)
    assert (state.xi_quorum, state.xi_sync) == (700.0, 70.0)
    averages.forget_steps(member)
    averages.sample_step(member, 800)
    averages.sample_step(member, 0)
    assert member.step_ema == 700.0
    for _ in range(100):
        averages.sample_step(member, 3)
    assert member.median_ns == 3 and len(member.recent) == averages.RECENT_STEPS


def test_xi_quorum_is_from_the_first_ready_to_the_kth() -> None:
    talk = begun(quorum=2)
    talk.step(0, MS, g=2)
    talk.step(1, 30 * MS, g=2)
    assert talk.state.xi_quorum == 30 * MS


def test_xi_sync_is_from_the_end_of_grace_to_the_hand_over() -> None:
    talk = begun()
    talk.step(0, MS, g=2)
    ended = talk.round(T).grace_ended_at
    talk.answer(0, T, after=5 * MS)
    talk.merged(after=10 * MS)
    talk.hand = False
    talk.committed(after=2 * MS)
    assert not talk.state.xi_sync_known
    talk.give(ev.Handed(talk.puppets[1].connection, 0, 1), 40 * MS)
    assert talk.state.xi_sync == talk.now - ended == 57 * MS
    talk.give(ev.Handed(talk.puppets[0].connection, 0, 1), 40 * MS)
    assert talk.state.xi_sync == 57 * MS, "the first hand-over of a version is the sample"


def test_a_step_is_a_sample_once() -> None:
    talk = begun()
    recent = list(talk.member(0).recent)
    talk.says(0, talk.puppets[0].metadata())
    assert talk.member(0).recent == recent == [STEP_NS]


def test_pull_limit_is_four_averages_at_least_the_least_never_above_the_heartbeat_limit() -> None:
    talk = begun(pull_limit_min_s=0.25, heartbeat_limit_s=2.0)
    state, members = talk.state, list(talk.state.members.values())
    assert admission.pull_limit_ns(state, members) == int(0.25 * SECOND)
    members[0].pull_ema, members[1].pull_ema = 0.01 * SECOND, 0.1 * SECOND
    assert admission.pull_limit_ns(state, members) == int(0.4 * SECOND), "the largest over those pulled"
    assert admission.pull_limit_ns(state, members[:1]) == int(0.25 * SECOND)
    members[0].pull_ema = 3.0 * SECOND
    assert admission.pull_limit_ns(state, members) == 2 * SECOND
