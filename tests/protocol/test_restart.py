"""PROTOCOL section 12: what a syncer knows again from its journal."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.driving import MS, Talk, begun, book_of, fixed_of
from workbench.protocol import admission, restart
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol.actions import Fail, Merge
from workbench.protocol.moments import NEVER
from workbench.protocol.records import Kind, learner_of

T = 2


def merged_once(**keys: Any) -> Talk:
    talk = begun(**keys)
    talk.step(0, MS, g=2)
    talk.answer(0, T)
    talk.finish_round()
    return talk


def rejoin(talk: Talk, *learners: int) -> None:
    for m in learners:
        talk.join(m)


def test_versions_contributions_numbers_and_rounds_go_on() -> None:
    before = merged_once(quorum=1)
    before.fold(1)
    before.step(1, MS, g=3)
    talk = before.restarted()
    old, new = before.state, talk.state
    assert (new.versions, new.version_rounds, new.merges) == ([1], [2], 1)
    assert (sorted(new.rounds), new.next_t, new.next_p, new.closed_below) == ([4], old.next_t, old.next_p, 4)
    assert new.incarnation == old.incarnation + 1 and new.began
    for m in (0, 1):
        was, now = old.members[m], new.members[m]
        assert (now.last_merged, now.last_merged_step) == (was.last_merged, was.last_merged_step)
        assert (now.known_seq, now.last_step, now.incarnation) == (was.known_seq, was.last_step, was.incarnation)
        assert not now.connected
    assert [r.reason for r in talk.of(Kind.SYNCER_STARTED)] == ["new", "restart"]


def test_the_journal_is_one_sequence_over_both_processes() -> None:
    talk = merged_once().restarted()
    seqs = [r.seq for r in talk.records if r.process == 0]
    assert seqs == list(range(1, len(seqs) + 1))


def test_an_open_round_starts_again_from_open_at_the_same_t_recorded() -> None:
    before = begun(quorum=2)
    before.step(0, MS, g=2)
    before.step(1, MS, g=2)
    before.answer(0, T)
    talk = before.restarted()
    assert [(r.round, r.fragment) for r in talk.of(Kind.ROUND_RESTARTED)] == [(T, 0)]
    assert talk.state_of(T) == "OPEN" and not talk.round(T).here and not talk.round(T).pulls, (
        "its fragments are forgotten"
    )
    rejoin(talk, 0, 1)
    assert talk.state_of(T) == "PULLING" and sorted(talk.round(T).pulls) == [0, 1]
    talk.answer(0, T)
    talk.answer(1, T)
    assert next(o for o in talk.orders if isinstance(o, Merge)).learners == [0, 1], "the work was still in the learners"


def test_a_fragment_of_the_first_attempt_that_still_fits_is_used() -> None:
    before = begun(quorum=2)
    before.step(0, MS, g=2)
    before.step(1, MS, g=2)
    talk = before.restarted()
    rejoin(talk, 0)
    assert talk.state_of(T) == "READY" and not talk.round(T).pulls
    talk.answer(0, T)
    assert list(talk.round(T).here) == [0]
    rejoin(talk, 1)
    assert [learner_of(r.peer) for r in talk.of(Kind.PULL_SENT)][-1] == 1
    talk.answer(1, T)
    assert next(o for o in talk.orders if isinstance(o, Merge)).learners == [0, 1]


def test_a_merge_in_the_journal_without_its_commit_is_a_merge() -> None:
    """Killed exactly between the two: the slot holds it, and nobody merges it again."""
    before = begun()
    before.step(0, MS, g=2)
    before.answer(0, T)
    before.merged()
    assert before.state.versions == [0]
    talk = before.restarted()
    assert talk.state.versions == [1] and sorted(talk.state.rounds) == [4]
    committed = talk.of(Kind.MERGE_COMMITTED)
    assert [(r.round, r.fragment, r.version, r.reason) for r in committed] == [(T, 0, 1, "recovered")]
    rejoin(talk, 0)
    update = talk.to(0, msg.Update)[-1]
    assert (update.version, update.last_merged, update.last_merged_step) == (1, 1, 2)


def test_a_merge_that_is_not_in_the_journal_is_none() -> None:
    before = begun()
    before.step(0, MS, g=2)
    before.answer(0, T)
    assert before.state_of(T) == "MERGING"
    talk = before.restarted()
    assert talk.state.versions == [0] and talk.state_of(T) == "OPEN"


def test_what_learners_lack_is_sent_when_they_come_back() -> None:
    before = merged_once()
    talk = before.restarted()
    rejoin(talk, 0, 1)
    assert [u.version for m in (0, 1) for u in talk.to(m, msg.Update)] == [1, 1]
    assert [w.rejoin for m in (0, 1) for w in talk.to(m, msg.Welcome)] == [True, True]
    assert [talk.member(m).incarnation for m in (0, 1)] == [2, 2]


def test_a_backlog_that_grew_meanwhile_is_limited() -> None:
    before = begun(period=2, fragments=2)
    before.puppets[0].g = 40
    talk = before.restarted()
    talk.puppets[0].count_step()
    talk.puppets[0].g = 41
    rejoin(talk, 0)
    assert sorted(talk.state.rounds) == [1]
    talk.answer(0, 1, 1)
    talk.finish_round()
    assert sorted(talk.state.rounds) == [40]


def test_a_backlog_is_where_the_journal_says() -> None:
    before = begun(period=4, fragments=1)
    before.step(0, MS, g=30)
    before.answer(0, 4)
    before.finish_round()
    assert sorted(before.state.rounds) == [28]
    talk = before.restarted()
    assert sorted(talk.state.rounds) == [28] and talk.state.next_t == before.state.next_t


def test_previous_merge_times_count_as_never() -> None:
    assert merged_once().restarted().state.merged_at == [NEVER]


def test_own_steps_are_not_repeated_and_unrecorded_ones_are() -> None:
    before = begun()
    before.step(0, count=5)
    recorded = before.puppets[0].n
    before.puppets[0].count_step()
    talk = before.restarted()
    talk.join(0, number=2)
    assert talk.to(0, msg.Welcome)[-1].first_step == recorded + 1


def test_settings_are_applied_again_and_a_round_keeps_those_of_its_opening() -> None:
    before = begun()
    before.give(ev.SettingsAsked({"merge": "mean", "quorum": 2, "fold_alpha": 0.1, "outer": "sgd"}, "page"))
    before.give(ev.QuarantineAsked(1, True, "page"))
    talk = before.restarted()
    book = talk.state.book
    assert book == before.state.book and book.revision == 1 and book.merge.merge == "mean"
    assert talk.round(T).settings.merge == "rda" and talk.round(T).revision == 0
    assert talk.member(1).quarantined and not talk.member(0).quarantined
    assert talk.state.changed_seq == before.state.changed_seq


def test_adaptive_grace_works_at_once() -> None:
    """Steps of the journal are steps of the learners; timings of its merges stand for the averages."""
    before = begun(quorum=2, grace="adaptive", period=4, fragments=4, overlap=2)
    for t, p in ((1, 1), (2, 2), (3, 3)):
        before.step(0, 40 * MS, g=t)
        before.step(1, 30 * MS, g=t)
        for m in (0, 1):
            before.answer(m, t, p)
        before.finish_round()
        for m in (0, 1):
            before.fold(m, p)
    talk = before.restarted()
    for m in (0, 1):
        was, now = before.member(m), talk.member(m)
        assert (now.recent, now.median_ns, now.step_ema) == (was.recent, was.median_ns, was.step_ema) != ([], 0, -1.0)
    assert talk.state.xi_quorum == before.state.xi_quorum == pytest.approx(30 * MS)
    assert 0 < talk.state.xi_sync <= before.state.xi_sync
    rejoin(talk, 0, 1)
    window = admission.adaptive_grace(talk.state)
    assert window == pytest.approx(admission.adaptive_grace(before.state), rel=0.02) and window > 100 * MS


def test_steps_of_a_process_that_was_replaced_are_not_those_of_the_next() -> None:
    before = begun()
    before.step(0, count=3)
    before.join(0, number=2)
    talk = before.restarted()
    assert talk.member(0).recent == [] and talk.member(0).process_number == 2
    assert talk.member(1).recent


def test_bad_numbers_are_still_to_be_folded_anew() -> None:
    before = begun()
    before.step(0, MS, g=2)
    before.answer(0, T, finite=False)
    assert before.member(0).anew == [1]
    before.fold(0)
    before.step(0, MS)
    talk = before.restarted()
    assert talk.member(0).anew == [1] == before.member(0).anew, "a fold of what was sent before clears nothing"
    assert talk.state.anew_serial == before.state.anew_serial
    rejoin(talk, 0)
    assert [u.anew for u in talk.to(0, msg.Update)] == [1]


def test_another_process_has_nothing_to_fold_anew() -> None:
    before = begun()
    before.step(0, MS, g=2)
    before.answer(0, T, finite=False)
    before.join(0, number=2)
    assert before.member(0).anew == [0] == before.restarted().member(0).anew


def test_fresh_outer_state_is_made_once_over_a_restart_too() -> None:
    before = begun()
    before.give(ev.SettingsAsked({"outer": "sgd"}, "page"))
    fresh = []
    for t in (2, 4):
        before.step(0, MS, g=t)
        before.answer(0, t)
        fresh.append(before.merged().fresh_outer)
        before.committed()
        before.fold(0)
    assert fresh == [False, True], "the first round was opened before the change"
    talk = before.restarted()
    assert talk.state.outer_revision == before.state.outer_revision == [1]
    assert not talk.round(6).fresh_outer


def test_a_lost_quorum_is_said_again_only_if_it_was_not_lost_before() -> None:
    before = begun(quorum=2)
    talk = before.restarted()
    assert [r.detail["missing"] for r in talk.of(Kind.QUORUM_LOST)] == [["L0", "L1"]]
    rejoin(talk, 0, 1)
    assert len(talk.of(Kind.QUORUM_REGAINED)) == 1
    before = begun(quorum=2)
    before.exits(1)
    talk = before.restarted()
    assert len(talk.of(Kind.QUORUM_LOST)) == 1
    rejoin(talk, 0)
    talk.join(1, number=2)
    assert len(talk.of(Kind.QUORUM_REGAINED)) == 1


def test_a_learner_with_a_base_above_the_version_is_a_foreign_or_damaged_state() -> None:
    talk = merged_once().restarted()
    talk.puppets[1].base = [2]
    talk.connections += 1
    talk.give(ev.Received(talk.connections, talk.puppets[1].join()))
    (fail,) = [o for o in talk.orders if isinstance(o, Fail)]
    assert "L1 holds version 2 of fragment 0, the syncer 1: a foreign or damaged state" in fail.reason
    assert "\n" not in fail.reason


def test_a_process_that_ended_is_not_taken_back() -> None:
    before = begun()
    before.exits(0)
    talk = before.restarted()
    talk.connections += 1
    talk.give(ev.Received(talk.connections, talk.puppets[0].join()))
    assert not talk.member(0).connected


def test_skipped_and_aborted_rounds_stay_closed() -> None:
    before = begun()
    before.step(0, MS, g=2)
    before.answer(0, T, finite=False)
    found = restart.restore(fixed_of(before.config), book_of(before.config), before.records)
    assert found.reopened == [4] and found.uncommitted == []
    before.give(ev.StopAsked("asked"))
    found = restart.restore(fixed_of(before.config), book_of(before.config), before.records)
    assert found.reopened == []


def test_a_run_that_has_ended_stays_ended() -> None:
    before = merged_once(rounds=1)
    for m in (0, 1):
        before.says(m, before.puppets[m].metadata(leaving=True))
    found = restart.restore(fixed_of(before.config), book_of(before.config), before.records)
    assert found.state.finished
