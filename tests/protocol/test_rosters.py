"""Learners that are added to a run, and removed from it."""

from __future__ import annotations

import pytest

from tests.protocol.driving import MS, Talk, begun
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol import quorum, restart
from workbench.protocol.records import Kind, learner_of, process_of
from workbench.protocol.settings import SECOND

T = 2


def refusals(talk: Talk) -> list[str]:
    return [r.reason for r in talk.of(Kind.SETTING_REFUSED)]


def farewells(talk: Talk, learner: int) -> list[str]:
    return [message.reason for message in talk.to(learner, msg.End)]


def test_an_added_learner_gets_the_next_id_and_is_merged() -> None:
    talk = begun()
    talk.give(ev.AddAsked("cli"))
    talk.give(ev.AddAsked("cli"))
    assert [(r.peer, r.detail) for r in talk.of(Kind.LEARNER_ADDED)] == [
        (process_of(2), {"who": "cli"}), (process_of(3), {"who": "cli"})
    ]  # fmt: skip
    assert quorum.expected(talk.state) == [0, 1, 2, 3]
    talk.join(2)
    talk.heal(2)
    for learner in range(3):
        talk.step(learner, g=T)
    for learner in range(3):
        talk.answer(learner, T)
    talk.finish_round()
    assert 2 in talk.of(Kind.MERGED)[0].detail["learners"] or len(talk.to(2, msg.Pull)) == 1


def test_a_quorum_of_all_there_are_now_may_be_asked_for() -> None:
    talk = begun()
    talk.give(ev.SettingsAsked({"quorum": 3}, "cli"))
    assert refusals(talk) == ["quorum = 3 with 2 learners; allowed: 1 to 2"]
    talk.give(ev.AddAsked("cli"))
    talk.give(ev.SettingsAsked({"quorum": 3}, "cli"))
    assert talk.state.book.policy.quorum == 3
    (lost,) = talk.of(Kind.QUORUM_LOST)
    assert lost.detail == {"missing": ["L2"]}


def test_a_removed_learner_is_told_to_leave_and_never_taken_in_again() -> None:
    talk = begun(learners=3)
    talk.give(ev.RemoveAsked(1, "cli"))
    (lost,) = talk.of(Kind.LEARNER_LOST)
    assert (lost.peer, lost.reason, lost.detail) == (process_of(1), "removed", {"who": "cli"})
    assert farewells(talk, 1) == ["removed"] and not talk.member(1).connected
    talk.step(1)
    assert not talk.member(1).connected, "what still comes from it is of nobody"
    for number in (None, 2):
        talk.join(1, number)
        assert farewells(talk, 1)[-1] in ("removed", "superseded") and not talk.member(1).connected
    talk.give(ev.AddAsked("cli"))
    assert learner_of(talk.of(Kind.LEARNER_ADDED)[0].peer) == 3, "its id is nobody else's"


def test_what_it_had_sent_is_merged_and_what_it_was_asked_for_is_not_waited_for() -> None:
    talk = begun(learners=3, grace="all")
    for learner in range(3):
        talk.step(learner, g=T)
    assert talk.state_of(T) == "PULLING"
    talk.answer(0, T)
    talk.answer(1, T)
    talk.give(ev.RemoveAsked(1, "cli"))
    talk.give(ev.RemoveAsked(2, "cli"), MS)
    talk.finish_round()
    (merged,) = talk.of(Kind.MERGED)
    assert merged.detail["learners"] == [0, 1]


@pytest.mark.parametrize(("learner", "why"), [
    (1, "without L1 1 learners are left for quorum = 2; set quorum=1 first, or add one"),
    (7, "there is no L7; there are L0, L1"),
])  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(learner: int, why: str) -> None:
    talk = begun(quorum=2)
    talk.give(ev.RemoveAsked(learner, "cli"))
    assert refusals(talk) == [why] and not talk.state.removed


def test_the_last_one_stays_and_nobody_is_removed_twice() -> None:
    talk = begun()
    talk.give(ev.RemoveAsked(1, "cli"))
    talk.give(ev.RemoveAsked(1, "cli"))
    talk.give(ev.RemoveAsked(0, "cli"))
    assert refusals(talk) == [
        "L1 was removed already", "without L0 0 learners are left for quorum = 1; add one first"
    ]  # fmt: skip


def test_rounds_begin_when_those_have_joined_that_are_still_expected() -> None:
    talk = Talk(learners=3).start()
    talk.join(0)
    talk.join(1)
    assert not talk.state.began
    talk.give(ev.RemoveAsked(2, "cli"))
    assert talk.state.began


def test_a_run_that_ends_takes_nobody_in() -> None:
    talk = begun()
    talk.give(ev.StopAsked("stopped"))
    talk.give(ev.AddAsked("cli"))
    assert refusals(talk) == ["the run is ending: no learner is added any more"]


def test_a_restarted_syncer_knows_who_takes_part() -> None:
    talk = begun(learners=3)
    talk.give(ev.AddAsked("cli"))
    talk.give(ev.RemoveAsked(1, "cli"))
    talk.give(ev.SettingsAsked({"quorum": 3}, "cli"))
    again = talk.restarted()
    assert (again.state.added, again.state.removed) == ([3], [1])
    assert again.state.book.policy.quorum == 3
    again.join(1, 2)
    assert not again.member(1).connected
    again.pass_time(2 * SECOND / SECOND)
    assert restart.restore(talk.state.fixed, talk.state.book, []).state.added == []
