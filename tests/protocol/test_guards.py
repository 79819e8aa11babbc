"""Guards: what is refused, who is flagged, who is quarantined, and what is merged of the rest."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.protocol.driving import MS, Talk, begun
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol.actions import Merge
from workbench.protocol.member_state import Member
from workbench.protocol.records import Kind, learner_of, process_of

LEARNERS = 4


def guarded(**keys: Any) -> Talk:
    """Four learners of which all have to be ready, healed."""
    return begun(learners=LEARNERS, quorum=LEARNERS, **keys)


def orders(talk: Talk) -> list[Merge]:
    return [order for order in talk.orders if isinstance(order, Merge)]


def pulled(talk: Talk) -> int:
    """All learners are ready for the round in flight, and asked; returns its t."""
    (t,) = talk.state.rounds
    for learner in range(LEARNERS):
        talk.step(learner, g=t)
    assert talk.state_of(t) == "PULLING"
    return t


def arrive(talk: Talk, norms: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)) -> int:
    t = pulled(talk)
    for learner, norm in enumerate(norms):
        talk.answer(learner, t, norm=norm)
    return t


def through(talk: Talk, cosines: dict[int, float] | None = None, norms: dict[int, float] | None = None) -> list[int]:
    """The arithmetic is through with the order; its learners."""
    order = orders(talk)[-1]
    talk.give(
        ev.MergeDone(
            order.round, order.fragment, True, 1, 2, 1.0,
            [(norms or {}).get(m, 1.0) for m in order.learners],
            [(cosines or {}).get(m, 0.5) for m in order.learners], [1] * len(order.learners),
        ),
        MS,
    )  # fmt: skip
    return order.learners


def whole_round(talk: Talk, norms: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0), **cosines: float) -> None:
    """A round from its pulls to the folds of its version, whoever is refused."""
    arrive(talk, norms)
    through(talk, {int(name[1:]): cosine for name, cosine in cosines.items()})
    if talk.state.rounds and talk.state_of(min(talk.state.rounds)) == "MERGING":
        through(talk)
    talk.committed()
    for learner in range(LEARNERS):
        talk.fold(learner, anew=talk.member(learner).anew[0])
        talk.step(learner)


def refusals(talk: Talk) -> list[tuple[int, str]]:
    return [(learner_of(r.peer), r.detail.get("guard", r.reason)) for r in talk.of(Kind.FRAGMENT_DROPPED)]


def flags(talk: Talk) -> list[list[int]]:
    return [r.detail.get("flagged", []) for r in talk.of(Kind.MERGED)]


# norms


def test_a_norm_far_above_the_others_and_its_own_is_refused_and_its_learner_healed() -> None:
    talk = guarded()
    for _ in range(3):
        whole_round(talk, (1.0, 2.0, 3.0, 1.0))
    t = arrive(talk, (1.0, 2.0, 3.0, 20.5))
    (refused,) = talk.of(Kind.FRAGMENT_DROPPED)
    assert (refused.peer, refused.round, refused.reason, refused.step) == (
        process_of(3), t, "guard", talk.puppets[3].n
    )  # fmt: skip
    assert refused.detail == {"guard": "norm", "norm": 20.5, "others": 2.0, "own": 1.0}
    assert through(talk) == [0, 1, 2], "the others alone"
    assert talk.to(3, msg.Update)[-1].anew == talk.member(3).anew[0] == 1
    (merged,) = [r for r in talk.of(Kind.MERGED) if r.round == t]
    assert merged.detail["learners"] == [0, 1, 2]


@pytest.mark.parametrize(("norms", "why"), [
    ((1.0, 1.0, 1.0, 9.9), "less than ten times the others'"),
    ((20.0, 20.0, 20.0, 20.0), "all of them are larger"),
    ((1.0, 30.0, 30.0, 30.0), "most of the others are larger"),
])  # fmt: skip
def test_a_norm_that_is_large_in_one_respect_alone_is_merged(norms: tuple[float, ...], why: str) -> None:
    talk = guarded()
    for _ in range(3):
        whole_round(talk)
    arrive(talk, norms)
    assert through(talk) == [0, 1, 2, 3], why


def test_a_norm_may_be_larger_in_proportion_to_the_own_steps_it_stands_for() -> None:
    """Of a learner that was stopped, or cut off, and has trained for longer since its fragment was last folded."""
    for norm, learners in ((20.0, [0, 1, 2, 3]), (400.0, [0, 1, 2])):
        talk = guarded()
        for _ in range(3):
            whole_round(talk)
        (t,) = talk.state.rounds
        for _ in range(29):
            talk.step(3, g=t)
        arrive(talk, (1.0, 1.0, 1.0, norm))
        assert through(talk) == learners, "with 30 steps against one 300 times the norm is the limit"


def test_without_three_norms_of_its_own_there_is_no_verdict() -> None:
    talk = guarded()
    for _ in range(2):
        whole_round(talk)
    arrive(talk, (1.0, 1.0, 1.0, 1e6))
    assert through(talk) == [0, 1, 2, 3]


def test_the_own_norms_are_the_last_eight_that_were_merged() -> None:
    talk = guarded()
    for k in range(10):
        arrive(talk)
        through(talk, norms={2: float(k + 1)})
        talk.committed()
        for learner in range(LEARNERS):
            talk.fold(learner)
            talk.step(learner)
    assert talk.member(2).norms == {0: [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]}


def test_the_factor_is_a_live_setting_of_rounds_that_wait_too() -> None:
    talk = guarded(guard_norm=0.0)
    for _ in range(3):
        whole_round(talk)
    t = pulled(talk)
    for learner in range(3):
        talk.answer(learner, t, norm=1.0)
    talk.give(ev.SettingsAsked({"guard_norm": 5.0}, "page"))
    talk.answer(3, t, norm=6.0)
    assert refusals(talk) == [(3, "norm")]


def test_one_alone_is_never_refused_for_its_norm() -> None:
    talk = begun(learners=1, quorum=1)
    for _ in range(4):
        (t,) = talk.state.rounds
        talk.step(0, g=t)
        talk.answer(0, t, norm=10.0**t)
        talk.finish_round()
        talk.fold(0)
        talk.step(0)
    assert not talk.of(Kind.FRAGMENT_DROPPED)


# cosines


def test_who_is_against_the_others_in_three_rounds_running_is_flagged_and_merged() -> None:
    talk = guarded()
    for _ in range(5):
        whole_round(talk, m1=-0.5)
    assert flags(talk) == [[], [], [1], [1], [1]]
    assert not talk.of(Kind.FRAGMENT_DROPPED) and talk.member(1).opposed == 5
    assert all(r.detail["learners"] == [0, 1, 2, 3] for r in talk.of(Kind.MERGED))


def test_a_round_in_which_it_is_not_begins_the_count_anew() -> None:
    talk = guarded()
    for cosine in (-0.5, -0.5, -0.29, -0.5, -0.5):
        whole_round(talk, m1=cosine)
    assert not any(flags(talk)) and talk.member(1).opposed == 2


def test_of_two_nobody_says_which_is_wrong() -> None:
    talk = begun(learners=2, quorum=2)
    for _ in range(4):
        (t,) = talk.state.rounds
        for learner in range(2):
            talk.step(learner, g=t)
        for learner in range(2):
            talk.answer(learner, t, norm=1.0)
        order = orders(talk)[-1]
        talk.give(ev.MergeDone(t, order.fragment, True, 1, 2, 1.0, [1.0, 1.0], [-1.0, -1.0], [1, 1]), MS)
        talk.committed()
        for learner in range(2):
            talk.fold(learner)
            talk.step(learner)
    assert not any(flags(talk)) and not talk.member(0).opposed


def test_with_guard_cosine_the_third_is_refused_and_the_others_are_merged_anew() -> None:
    talk = guarded(guard_cosine=True)
    for _ in range(2):
        whole_round(talk, m1=-0.5)
    arrive(talk)
    assert through(talk, {0: -0.4, 1: -0.5}) == [0, 1, 2, 3]
    assert refusals(talk) == [(1, "cosine")]
    assert through(talk) == [0, 2, 3], "of those against the others only the worst that is flagged"
    talk.committed()
    assert talk.of(Kind.MERGED)[-1].detail["learners"] == [0, 2, 3]
    assert talk.member(0).opposed == 0, "judged without the one that was refused"


def test_nothing_is_left_of_a_round_whose_contributions_are_all_refused() -> None:
    talk = guarded(guard_cosine=True)
    for _ in range(2):
        whole_round(talk, m0=-0.5, m1=-0.5, m2=-0.5, m3=-0.5)
    arrive(talk)
    all_against = dict.fromkeys(range(LEARNERS), -0.9)
    assert through(talk, all_against) == [0, 1, 2, 3]
    assert through(talk, all_against) == [1, 2, 3]
    assert through(talk, all_against) == [2, 3], "two do not judge each other"
    assert refusals(talk) == [(0, "cosine"), (1, "cosine")]


# quarantine


def poison(talk: Talk, learner: int) -> int:
    """A round with bad numbers of one learner; it folds anew."""
    t = pulled(talk)
    for other in range(LEARNERS):
        if other != learner:
            talk.answer(other, t, norm=1.0)
    talk.answer(learner, t, finite=False, norm=math.nan)
    through(talk)
    talk.committed()
    for other in range(LEARNERS):
        talk.fold(other, anew=talk.member(other).anew[0])
        talk.step(other)
    return t


def test_who_poisons_often_enough_in_a_row_is_quarantined_until_released() -> None:
    talk = guarded(quarantine_after=2)
    poison(talk, 2)
    assert not talk.member(2).quarantined
    t = poison(talk, 2)
    (changed,) = talk.of(Kind.SETTING_CHANGED)
    assert (changed.peer, changed.detail) == (process_of(2), {"values": {"quarantined": True}, "who": "guard"})
    assert changed.reason == "2 contributions in a row refused, the last as nonfinite"
    (lost,) = talk.of(Kind.QUORUM_LOST)
    assert lost.detail == {"missing": ["L2"], "quarantined": ["L2"]}, "it does not count as possible"
    assert lost.reason == "quarantined"
    talk.give(ev.QuarantineAsked(2, False, "cli"))
    assert talk.of(Kind.QUORUM_REGAINED) and not talk.member(2).quarantined
    assert talk.of(Kind.MERGED)[-1].round == t


def test_a_contribution_that_is_merged_ends_the_row() -> None:
    talk = guarded(quarantine_after=2)
    for _ in range(3):
        poison(talk, 2)
        whole_round(talk)
    assert not talk.of(Kind.SETTING_CHANGED)


def test_zero_is_never() -> None:
    talk = guarded(quarantine_after=0)
    for _ in range(6):
        poison(talk, 2)
    assert not talk.member(2).quarantined and not talk.of(Kind.SETTING_CHANGED)


def test_a_release_of_who_is_not_quarantined_is_refused() -> None:
    talk = guarded()
    talk.give(ev.QuarantineAsked(2, False, "cli"))
    assert [r.reason for r in talk.of(Kind.SETTING_REFUSED)] == ["L2 is not quarantined"]


# restarts


def standing(member: Member) -> tuple[dict[int, list[float]], int, int, bool, list[int]]:
    return member.norms, member.opposed, member.poisonings, member.quarantined, member.anew


def test_a_restarted_syncer_knows_what_it_had_learnt_of_everybody() -> None:
    talk = guarded(guard_cosine=True, quarantine_after=3)
    for k in range(4):
        whole_round(talk, (1.0, 1.0, 1.0, 1.0 if k < 3 else 99.0), m1=-0.5)
    poison(talk, 3)
    t = pulled(talk)
    talk.answer(3, t, finite=False)
    assert refusals(talk).count((3, "nonfinite")) == 2 and (1, "cosine") in refusals(talk)
    again = talk.restarted()
    for learner in range(LEARNERS):
        assert standing(again.member(learner)) == standing(talk.member(learner)), learner
