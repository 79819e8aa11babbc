"""PROTOCOL section 3: who is never merged is reported with the cause that applied most often, and the remedy."""

from __future__ import annotations

import pytest

from tests.protocol.driving import MS, Talk, begun
from workbench.protocol import events as ev
from workbench.protocol import starvation
from workbench.protocol.records import Kind, learner_of

PERIOD = 2
LIMIT = 2 * PERIOD
"""2 H rounds."""


def round_with(talk: Talk, learners: tuple[int, ...] = (0,)) -> None:
    """The round in flight is merged from these learners."""
    ((t, _),) = talk.state.rounds.items()
    for m in learners:
        talk.step(m, 2000 * MS if m == learners[0] else 0, g=t)
    for m in learners:
        talk.answer(m, t)
    talk.finish_round()
    for m in learners:
        talk.fold(m)


def beside(talk: Talk, cause: str) -> None:
    """Learner 1 is left out of the round in flight for this cause."""
    ((t, round_),) = talk.state.rounds.items()
    puppet = talk.puppets[1]
    if cause == "no_steps":
        talk.fold(1)
        talk.says(1, puppet.metadata())
    elif cause == "base_behind":
        talk.says(1, puppet.metadata(base=[talk.state.versions[0] - 1]))
    elif cause in ("not_fresh", "not_ready"):
        talk.says(1, puppet.metadata(c_steps=[1], base=[talk.state.versions[0]]))
    talk.step(0, MS, g=t)
    if cause == "pull_limit":
        round_.left_out[1] = "pull_limit"
    talk.answer(0, t)
    talk.finish_round()
    talk.fold(0)


@pytest.mark.parametrize("cause", ["no_steps", "base_behind", "not_fresh", "not_ready", "pull_limit"])
def test_each_cause_is_counted_and_has_a_remedy(cause: str) -> None:
    talk = begun(period=PERIOD, eligibility="step" if cause == "not_ready" else "fresh")
    for i in range(LIMIT):
        assert not talk.of(Kind.LEARNER_STARVED), i
        beside(talk, cause)
    (starved,) = talk.of(Kind.LEARNER_STARVED)
    assert (learner_of(starved.peer), starved.reason, starved.steps) == (1, cause, LIMIT)
    assert starved.detail["causes"] == {cause: LIMIT}
    assert starved.detail["remedy"] == starvation.REMEDIES[cause] != ""


def test_the_cause_that_applied_most_often_is_named() -> None:
    talk = begun(period=PERIOD)
    for cause in ("no_steps", "base_behind", "base_behind", "no_steps"):
        beside(talk, cause)
    (starved,) = talk.of(Kind.LEARNER_STARVED)
    assert starved.reason == "base_behind", "equal counts: the first by name"
    assert starved.detail["causes"] == {"no_steps": 2, "base_behind": 2}


def test_a_merge_ends_the_count() -> None:
    talk = begun(period=PERIOD)
    for _ in range(LIMIT - 1):
        beside(talk, "no_steps")
    ((t, _),) = talk.state.rounds.items()
    talk.step(0, MS, g=t)
    talk.step(1, 0, g=t)
    talk.give(ev.SettingsAsked({"quorum": 1}, "test"))
    assert talk.member(1).rounds_missed == LIMIT - 1
    talk = begun(period=PERIOD, quorum=2)
    talk.member(1).rounds_missed, talk.member(1).missed_why = LIMIT - 1, {"no_steps": LIMIT - 1}
    round_with(talk, (0, 1))
    assert talk.member(1).rounds_missed == 0 and not talk.of(Kind.LEARNER_STARVED)


def test_who_is_lost_healing_or_quarantined_is_not_starved() -> None:
    talk = begun(learners=4, period=PERIOD)
    talk.exits(1)
    talk.member(2).healed = False
    talk.give(ev.QuarantineAsked(3, True, "page"))
    for _ in range(LIMIT + 1):
        ((t, _),) = talk.state.rounds.items()
        talk.step(0, MS, g=t)
        talk.answer(0, t)
        talk.finish_round()
        talk.fold(0)
    assert not talk.of(Kind.LEARNER_STARVED)


@pytest.mark.parametrize(("reason", "cause"), [
    ("base_differs", "base_behind"), ("update_unfolded", "base_behind"), ("no_steps", "no_steps"),
])  # fmt: skip
def test_a_refusal_counts_under_its_cause(reason: str, cause: str) -> None:
    talk = begun(period=PERIOD, quorum=1)
    for _ in range(LIMIT):
        ((t, round_),) = talk.state.rounds.items()
        talk.says(1, talk.puppets[1].metadata(c_steps=[1], base=list(talk.state.versions)), MS)
        talk.step(0, 0, g=t)
        talk.says(1, talk.puppets[1].refusal(t, reason=reason))
        talk.answer(0, t)
        assert round_.left_out[1] == reason
        talk.finish_round()
        talk.fold(0)
    (starved,) = talk.of(Kind.LEARNER_STARVED)
    assert starved.detail["causes"] == {cause: LIMIT} and starved.detail["remedy"]


def test_a_round_that_merged_nobody_is_missed_by_all() -> None:
    talk = begun(period=PERIOD)
    for i in range(LIMIT):
        ((t, _),) = talk.state.rounds.items()
        talk.step(0, MS, g=2 * (i + 1))
        talk.says(0, talk.puppets[0].fragment(t, tokens=0))
    assert {learner_of(r.peer): r.reason for r in talk.of(Kind.LEARNER_STARVED)} == {0: "round_skipped", 1: "not_fresh"}


def test_it_is_reported_again_after_as_many_rounds() -> None:
    talk = begun(period=PERIOD)
    for _ in range(2 * LIMIT):
        beside(talk, "no_steps")
    assert [r.steps for r in talk.of(Kind.LEARNER_STARVED)] == [LIMIT, LIMIT]
