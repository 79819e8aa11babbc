"""PROTOCOL sections 3 and 4: clean, ready, admitted; how long a round waits; and the pull limit of section 5."""

from __future__ import annotations

import pytest

from tests.protocol.driving import MS, SECOND, Talk, begun
from workbench.protocol import admission
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol.admission import fresh_for_ns, is_clean
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
