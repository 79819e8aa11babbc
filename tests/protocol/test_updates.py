"""PROTOCOL section 7: one re-send rule, one waiting UPDATE per fragment, and the acknowledgement that it carries."""

from __future__ import annotations

import pytest

from tests.protocol.driving import MS, SECOND, Talk, begun
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol.member_state import Sent
from workbench.protocol.records import Kind

T = 2


def updates_to(talk: Talk, learner: int) -> list[tuple[int, int]]:
    return [(u.fragment, u.version) for u in talk.to(learner, msg.Update)]


def merged_once(talk: Talk) -> Talk:
    """Learner 0 contributes to version 1."""
    talk.step(0, MS, g=2)
    talk.answer(0, T)
    talk.finish_round()
    return talk


def test_a_joiner_is_sent_every_fragment() -> None:
    talk = Talk(period=4, fragments=3).start()
    talk.state.versions = [2, 0, 7]
    talk.join(0)
    assert updates_to(talk, 0) == [(0, 2), (1, 0), (2, 7)]


def test_what_is_on_its_way_is_not_sent_again_for_twice_the_send_average() -> None:
    talk = merged_once(begun())
    talk.member(1).send_ema = 150.0 * MS
    talk.step(1, 100 * MS)
    talk.step(1, 100 * MS)
    talk.step(1, 99 * MS)
    assert updates_to(talk, 1) == [(0, 0), (0, 1)]
    talk.step(1, 1 * MS)
    assert updates_to(talk, 1) == [(0, 0), (0, 1), (0, 1)], "300 ms = 2 x 150 ms after the hand-over"


def test_before_the_first_sample_the_average_is_a_second() -> None:
    talk = Talk().start()
    talk.join(0)
    talk.pass_time(1.99, alive=(0,))
    talk.step(0)
    assert len(updates_to(talk, 0)) == 1
    talk.step(0, 10 * MS)
    assert len(updates_to(talk, 0)) == 2


def test_the_send_average_is_from_the_hand_over_to_the_metadata_that_shows_the_version() -> None:
    talk = Talk().start()
    talk.join(0)
    talk.step(0, 100 * MS)
    assert talk.member(0).send_ema == -1.0
    talk.heal(0, 200 * MS)
    assert talk.member(0).send_ema == 300 * MS
    assert not talk.member(0).sent


def test_an_older_version_under_way_is_no_reason() -> None:
    talk = begun()
    talk.state.versions[0] = 1
    talk.member(0).sent[0] = Sent(0, talk.now)
    talk.member(0).send_ema = 9.0 * SECOND
    talk.puppets[0].base = [-1]
    talk.step(0, MS)
    assert updates_to(talk, 0)[-1] == (0, 1)


def test_another_connection_has_nothing_on_its_way() -> None:
    talk = merged_once(begun())
    count = len(updates_to(talk, 1))
    assert count == 2
    talk.join(1)
    assert updates_to(talk, 1) == [(0, 1)]


def test_a_stopped_learner_gets_only_the_newest_that_waits() -> None:
    talk = begun(period=2, fragments=2, overlap=1)
    talk.hand = False
    for _ in (1, 2, 3):
        for p in (1, 0):
            t = min(talk.state.rounds)
            talk.step(0, MS, g=t)
            talk.answer(0, t, p)
            talk.finish_round()
            talk.give(ev.Handed(talk.puppets[0].connection, p, talk.state.versions[p]))
            talk.fold(0, p)
    member = talk.member(1)
    assert talk.state.versions == [3, 3]
    assert member.in_hand == 1 and member.pending == {0: 3, 1: 3}, "one in the transport's hand, one per fragment waits"
    connection = talk.puppets[1].connection
    talk.give(ev.Handed(connection, 1, 1))
    talk.give(ev.Handed(connection, 0, 3))
    talk.give(ev.Handed(connection, 1, 3))
    assert updates_to(talk, 1)[-3:] == [(1, 1), (0, 3), (1, 3)] and not member.pending


def test_a_hand_over_on_another_connection_is_nothing() -> None:
    talk = begun()
    talk.hand = False
    talk.state.versions[0] = 1
    talk.step(0)
    talk.give(ev.Handed(77, 0, 1))
    assert talk.member(0).in_hand == 0


def test_an_update_names_the_addressees_last_contribution() -> None:
    talk = merged_once(begun())
    n = talk.puppets[0].n
    mine, other = talk.to(0, msg.Update)[-1], talk.to(1, msg.Update)[-1]
    assert (mine.version, mine.round, mine.last_merged, mine.last_merged_step) == (1, T, 1, n)
    assert (other.version, other.last_merged, other.last_merged_step) == (1, -1, -1)


def test_the_acknowledgement_is_in_every_later_update_too() -> None:
    talk = merged_once(begun())
    talk.fold(1)
    talk.step(1, MS, g=4)
    talk.answer(1, 4)
    talk.finish_round()
    update = talk.to(0, msg.Update)[-1]
    assert (update.version, update.last_merged) == (2, 1)


def test_every_message_of_the_syncer_carries_acked_and_closed_below() -> None:
    talk = merged_once(begun(lead=1))
    talk.pass_time(0.6, alive=(0, 1))
    for _, message in talk.sent:
        assert message.closed_below >= 1 and message.acked >= 0
    last = talk.to(0, msg.Beat)[-1]
    assert (last.closed_below, last.acked) == (4, talk.puppets[0].seq)


def test_a_fold_anew_that_is_under_way_is_sent_once_and_is_no_sample() -> None:
    """Its version is not higher: METADATA that shows the version says nothing of its arrival."""
    talk = begun()
    talk.step(0, MS, g=2)
    average = talk.member(0).send_ema = 1.0 * SECOND
    talk.answer(0, T, finite=False)
    count = len(talk.to(0, msg.Update))
    talk.step(0, 10 * MS)
    talk.step(0, 10 * MS)
    assert len(talk.to(0, msg.Update)) == count, "not once per METADATA"
    assert talk.member(0).send_ema == average and list(talk.member(0).sent) == [0]
    talk.fold(0, anew=1)
    talk.step(0, 100 * MS)
    assert not talk.member(0).sent and talk.member(0).send_ema == pytest.approx(average + (120 * MS - average) / 8)


def test_a_lost_fold_anew_is_sent_again() -> None:
    talk = begun()
    talk.member(0).send_ema = 50.0 * MS
    talk.step(0, MS, g=2)
    talk.answer(0, T, finite=False)
    count = len(talk.to(0, msg.Update))
    talk.step(0, 2 * SECOND - talk.now)
    again = talk.to(0, msg.Update)[count:]
    assert [(u.version, u.anew) for u in again] == [(0, 1)]
    assert [r.value for r in talk.of(Kind.UPDATE_SENT)][-1] == 1.0
