"""PROTOCOL sections 3 and 4: clean, ready, admitted; how long a round waits; and the pull limit of section 5."""

from __future__ import annotations

import pytest

from tests.protocol.driving import MS, SECOND, STEP_NS, Talk, begun
from workbench.protocol import admission, averages
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol.admission import adaptive_window_s, fresh_for_ns, is_clean
from workbench.protocol.records import Kind

T = 2


def clean(talk: Talk, learner: int = 0, p: int = 0) -> bool:
    return is_clean(talk.state, talk.member(learner), p, talk.now)


def test_a_healed_connected_learner_with_a_step_on_the_version_is_clean() -> None:
    talk = begun()
    assert clean(talk) and clean(talk, 1)


def test_clean_needs_a_connection() -> None:
    talk = begun()
    talk.give(ev.Disconnected(talk.puppets[0].connection))
    assert not clean(talk)


def test_clean_needs_health() -> None:
    talk = begun(healed=False)
    talk.fold(0)
    talk.says(0, talk.puppets[0].metadata())
    talk.puppets[0].c_steps = [1]
    talk.says(0, talk.puppets[0].metadata(healed=False))
    assert not clean(talk)
    talk.says(0, talk.puppets[0].metadata(healed=True))
    assert clean(talk)


def test_clean_needs_a_step_since_the_fold() -> None:
    talk = begun()
    talk.says(0, talk.puppets[0].metadata(c_steps=[0]))
    assert not clean(talk)


def test_clean_needs_the_current_version() -> None:
    talk = begun()
    talk.state.versions[0] = 1
    assert not clean(talk)
    talk.fold(0)
    talk.step(0)
    assert clean(talk)


def test_quarantine_keeps_a_learner_out_and_lets_it_in_again() -> None:
    talk = begun()
    talk.give(ev.QuarantineAsked(0, True, "page"))
    assert not clean(talk)
    talk.give(ev.QuarantineAsked(0, False, "page"))
    assert clean(talk)
    assert [r.detail["who"] for r in talk.of(Kind.SETTING_CHANGED)] == ["page", "page"]


def test_metadata_counts_for_three_median_steps_but_a_second_at_least() -> None:
    talk = begun()
    member = talk.member(0)
    assert fresh_for_ns(member) == SECOND
    talk.puppets[0].step_ns = 2 * SECOND
    for _ in range(3):
        talk.step(0)
    assert fresh_for_ns(member) == 6 * SECOND
    at = member.metadata_at
    assert is_clean(talk.state, member, 0, at + 6 * SECOND)
    assert not is_clean(talk.state, member, 0, at + 6 * SECOND + 1)


def test_before_the_first_step_metadata_counts_for_a_second() -> None:
    talk = begun(healed=False)
    assert talk.member(0).median_ns == 0 and fresh_for_ns(talk.member(0)) == SECOND


def test_a_join_counts_as_metadata() -> None:
    talk = begun()
    talk.give(ev.Disconnected(talk.puppets[0].connection))
    talk.join(0, after=MS)
    assert clean(talk)


def test_a_rejoin_without_join_counts_as_none() -> None:
    """REJOIN answers a message of an old incarnation: nothing is known of what the learner holds now."""
    talk = begun()
    talk.pass_time(2.5, alive=(1,))
    assert not talk.member(0).connected
    talk.says(0, talk.puppets[0].heartbeat())
    assert talk.member(0).connected and not clean(talk)
    talk.puppets[0].incarnation = 2
    talk.step(0, MS)
    assert clean(talk)


def test_refused_is_not_clean_until_newer_metadata() -> None:
    talk = begun()
    talk.step(0, MS, g=2)
    talk.says(0, talk.puppets[0].refusal(T))
    assert not clean(talk)
    talk.says(0, talk.puppets[0].heartbeat())
    assert not clean(talk), "a heartbeat is no METADATA"
    talk.says(0, talk.puppets[0].metadata())
    assert clean(talk)


def test_dropped_is_not_clean_until_newer_metadata() -> None:
    talk = begun()
    talk.step(0, MS, g=2)
    talk.answer(0, T, fits=False)
    assert not clean(talk)
    talk.step(0, MS)
    assert clean(talk)


def test_bad_numbers_are_not_clean_until_folded_anew() -> None:
    talk = begun()
    talk.step(0, MS, g=2)
    talk.answer(0, T, finite=False)
    anew = talk.to(0, msg.Update)[-1]
    assert anew.version == 0 and anew.anew == 1 == talk.member(0).anew[0]
    talk.step(0, MS)
    assert not clean(talk), "newer METADATA is not enough"
    talk.fold(0)
    talk.step(0, MS)
    assert not clean(talk), "nor is a fold of what was sent before"
    talk.fold(0, anew=1)
    talk.step(0, MS)
    assert clean(talk)


def test_anchor_base_takes_older_bases_within_those_kept_and_not_below_the_last_merged() -> None:
    talk = begun(anchor="base", anchors_kept=2)
    talk.state.versions[0] = 5
    member = talk.member(0)
    for base, merged, fits in (
        (5, -1, True),
        (3, -1, True),
        (2, -1, False),
        (3, 4, False),
        (4, 4, True),
        (-1, -1, False),
    ):
        member.last_merged[0] = merged
        assert admission.base_fits(talk.state, member, 0, base) is fits, (base, merged)
    talk.state.versions[0] = 1
    member.last_merged[0] = -1
    assert not admission.base_fits(talk.state, member, 0, -1), "-1 holds nothing that may be merged"
    assert not admission.base_fits(talk.state, member, 0, 2)


def test_ready_is_clean_and_far_enough_and_only_ready_makes_a_quorum() -> None:
    talk = begun()
    talk.step(0, MS, g=1)
    assert talk.state_of(T) == "OPEN"
    talk.step(0, MS, g=2)
    assert talk.state_of(T) == "PULLING"
    talk = begun(quorum=2)
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=1)  # fresh, but not ready
    assert talk.state_of(T) == "READY"


@pytest.mark.parametrize(("rule", "heard", "expected"), [
    ("fresh", True, [0, 1]), ("fresh", False, [0]), ("step", True, [0]), ("step", False, [0]), ("paced", False, [0, 1]),
])  # fmt: skip
def test_who_is_admitted(rule: str, heard: bool, expected: list[int]) -> None:
    """Learner 1 is clean and behind, heard of before or after learner 0 became ready."""
    talk = begun(eligibility=rule, grace="fixed", grace_s=0.2)
    talk.step(0, MS, g=2)
    if heard:
        talk.step(1, MS, g=1)
    talk.pass_time(0.21)
    (ended,) = talk.of(Kind.GRACE_ENDED)
    assert ended.detail["admitted"] == expected


def test_fresh_takes_metadata_of_the_very_moment() -> None:
    talk = begun()
    talk.step(1, MS, g=1)
    talk.step(0, 0, g=2)
    assert talk.of(Kind.GRACE_ENDED)[0].detail["admitted"] == [0, 1]


def test_paced_wants_metadata_newer_than_the_last_merge_of_the_fragment() -> None:
    talk = begun(eligibility="paced")
    talk.step(0, MS, g=2)
    talk.answer(0, T)
    talk.answer(1, T)
    talk.finish_round()
    assert talk.state.merged_at == [talk.now]
    talk.fold(0)
    talk.fold(1)
    talk.step(1, MS, g=3)
    talk.state.merged_at[0] = talk.now + 1
    talk.step(0, 2, g=4)
    assert talk.of(Kind.GRACE_ENDED)[-1].detail["admitted"] == [0]
    assert talk.of(Kind.GRACE_ENDED)[-1].detail["left_out"] == {1: "not_fresh"}


def test_a_ready_learner_that_paced_does_not_admit_makes_no_quorum() -> None:
    """Else a round could end its grace with nobody to ask."""
    talk = begun(eligibility="paced", quorum=2)
    talk.step(1, MS, g=2)
    talk.state.merged_at[0] = talk.now
    talk.step(0, MS, g=2)
    assert talk.state_of(T) == "READY"
    talk.step(1, MS, g=3)
    assert talk.state_of(T) == "PULLING"


# grace


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


# the pull limit


def test_pull_limit_is_four_averages_at_least_the_least_never_above_the_heartbeat_limit() -> None:
    talk = begun(pull_limit_min_s=0.25, heartbeat_limit_s=2.0)
    state, members = talk.state, list(talk.state.members.values())
    assert admission.pull_limit_ns(state, members) == int(0.25 * SECOND)
    members[0].pull_ema, members[1].pull_ema = 0.01 * SECOND, 0.1 * SECOND
    assert admission.pull_limit_ns(state, members) == int(0.4 * SECOND), "the largest over those pulled"
    assert admission.pull_limit_ns(state, members[:1]) == int(0.25 * SECOND)
    members[0].pull_ema = 3.0 * SECOND
    assert admission.pull_limit_ns(state, members) == 2 * SECOND
