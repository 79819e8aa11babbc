"""PROTOCOL sections 2 and 4: which rounds open, and what is passed over by whole periods."""

from __future__ import annotations

import pytest

from tests.protocol.driving import MS, Talk, begun
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol import pacer
from workbench.protocol.records import Kind


def merge_round(talk: Talk, t: int, p: int, g: int | None = None, learner: int = 0) -> None:
    talk.step(learner, MS, g=t if g is None else g)
    talk.answer(learner, t, p)
    talk.finish_round()


def test_rounds_follow_the_offsets() -> None:
    talk = begun(period=6, fragments=3)
    seen = [(r.t, r.p) for r in talk.state.rounds.values()]
    for _ in range(6):
        t, p = seen[-1]
        merge_round(talk, t, p)
        talk.fold(0, p)
        seen += [(r.t, r.p) for r in talk.state.rounds.values()]
    assert seen == [(2, 1), (4, 2), (6, 0), (8, 1), (10, 2), (12, 0), (14, 1)]


def test_the_pace_is_the_kth_largest_step_of_healed_connected_unquarantined_learners() -> None:
    talk = begun(learners=5, quorum=2)
    for m, g in enumerate((9, 7, 5, 3, 1)):
        talk.member(m).g = g
    assert pacer.pace_step(talk.state) == 7
    talk.member(0).connected = False
    assert pacer.pace_step(talk.state) == 5
    talk.member(1).quarantined = True
    assert pacer.pace_step(talk.state) == 3
    talk.member(2).healed = False
    assert pacer.pace_step(talk.state) == 1
    talk.member(3).healed = False
    assert pacer.pace_step(talk.state) is None


def test_nothing_else_paces_the_rounds() -> None:
    """K learners have to have g >= t: learners that are behind hold no round up, and steps of one alone open none."""
    talk = begun(learners=3, quorum=2)
    talk.step(0, MS, g=9)
    assert talk.state_of(2) == "READY"
    talk.step(1, MS, g=1)
    talk.step(2, MS, g=1)
    assert talk.state_of(2) == "READY"


@pytest.mark.parametrize(("ahead", "opened"), [(7, 8), (8, 8), (11, 8), (12, 12), (15, 12), (16, 16), (51, 48)])
def test_a_backlog_is_passed_over_by_the_most_whole_periods(ahead: int, opened: int) -> None:
    """H = 4, one fragment; the next round to open is 8, and is itself taken unless g >= 8 + H."""
    talk = begun(period=4, fragments=1)
    merge_round(talk, 4, 0, g=ahead)
    assert sorted(talk.state.rounds) == [opened]
    skipped = talk.of(Kind.ROUND_SKIPPED)
    if opened == 8:
        assert not skipped
    else:
        (record,) = skipped
        assert (record.reason, record.round, record.value) == ("backlog", 8, float(opened))
        assert record.steps == (opened - 8) // 4, "as many rounds as fragments were due"
        assert [n.round for n in talk.to(1, msg.Notice)] == [8]
        assert talk.to(1, msg.Notice)[0].closed_below == opened


def test_the_order_of_fragments_is_kept_over_a_backlog() -> None:
    talk = begun(period=4, fragments=4, overlap=2)
    merge_round(talk, 1, 1, g=23)
    assert [(r.t, r.p) for r in talk.state.rounds.values()] == [(2, 2), (23, 3)], "rounds in flight stay"
    assert talk.of(Kind.ROUND_SKIPPED)[0].steps == 5 * 4
    assert talk.state.closed_below == 2
    talk.answer(0, 2, 2)
    talk.finish_round()
    assert [(r.t, r.p) for r in talk.state.rounds.values()] == [(23, 3), (24, 0)]
    assert talk.state.closed_below == 23


def test_a_lasting_overload_merges_no_fragment_twice_in_a_row() -> None:
    talk = begun(period=4, fragments=2)
    merged = []
    for i in range(8):
        ((t, round_),) = talk.state.rounds.items()
        merged.append(round_.p)
        merge_round(talk, t, round_.p, g=t + 13 + 5 * i)
        talk.fold(0, round_.p)
    assert merged == [1, 0] * 4


def test_a_slow_learner_is_no_backlog() -> None:
    talk = begun(period=4, fragments=1, quorum=2)
    talk.step(0, MS, g=100)
    talk.step(1, MS, g=4)
    talk.answer(0, 4)
    talk.answer(1, 4)
    talk.finish_round()
    assert sorted(talk.state.rounds) == [8] and not talk.of(Kind.ROUND_SKIPPED)


def test_no_more_rounds_are_open_than_merges_are_left() -> None:
    talk = begun(period=4, fragments=4, overlap=3, rounds=2)
    assert sorted(talk.state.rounds) == [1, 2]
    talk.step(0, MS, g=2)
    talk.answer(0, 1, 1, finite=False)
    assert sorted(talk.state.rounds) == [2, 3], "one that closed without a merge is made up for"


def test_closed_below_is_the_oldest_round_in_flight_or_the_next() -> None:
    talk = Talk(period=4, fragments=2).start()
    assert talk.state.closed_below == 2
    talk = begun(period=4, fragments=2)
    merge_round(talk, 2, 1)
    assert talk.state.closed_below == 4


def test_a_stopped_run_opens_nothing() -> None:
    talk = begun(period=4, fragments=4, overlap=2)
    talk.give(ev.StopAsked("asked"))
    assert not talk.state.rounds
    talk.step(0, MS, g=9)
    assert not talk.state.rounds
