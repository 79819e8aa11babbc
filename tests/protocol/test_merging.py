"""PROTOCOL section 2: from contributions to a committed version, or to a round closed without one."""

from __future__ import annotations

from tests.protocol.driving import MS, Talk, begun
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol.actions import Commit, Merge, Release
from workbench.protocol.records import Kind

T = 2
"""The first round of the small run: one fragment, due at every second step."""


def admitted(talk: Talk) -> list[list[int]]:
    return [r.detail["admitted"] for r in talk.of(Kind.GRACE_ENDED)]


def test_an_update_goes_to_every_connected_learner_merged_or_not() -> None:
    talk = begun(learners=3)
    talk.step(0, MS, g=2)
    talk.answer(0, T)
    talk.finish_round()
    assert [u.version for m in range(3) for u in talk.to(m, msg.Update)[-1:]] == [1, 1, 1]
    assert admitted(talk) == [[0]]


def test_no_update_before_commit_and_no_commit_before_the_record() -> None:
    talk = begun()
    talk.step(0, MS, g=2)
    talk.answer(0, T)
    before = len(talk.to(1, msg.Update))
    order = next(o for o in talk.orders if isinstance(o, Merge))
    done = talk.give(ev.MergeDone(T, 0, True, 1, 2, 1.0, [1.0], [1.0], [1]))
    kinds = [type(action).__name__ for action in done]
    assert kinds.index("Append") < kinds.index("Commit")
    assert len(talk.to(1, msg.Update)) == before
    talk.committed()
    assert len(talk.to(1, msg.Update)) == before + 1
    assert order.version == 1


def test_a_quorum_is_about_arrival_guards_may_leave_fewer() -> None:
    talk = begun(quorum=2)
    talk.step(0, MS, g=2)
    talk.step(1, MS, g=2)
    talk.answer(0, T, finite=False)
    assert talk.state_of(T) == "PULLING"
    talk.answer(1, T)
    assert talk.state_of(T) == "MERGING"
    assert next(o for o in talk.orders if isinstance(o, Merge)).learners == [1]


def test_guards_that_leave_nobody_skip_the_round() -> None:
    talk = begun(lead=1)
    talk.step(0, MS, g=2)
    talk.answer(0, T, finite=False)
    assert [(r.round, r.reason) for r in talk.of(Kind.ROUND_SKIPPED)] == [(T, "nonfinite")]
    assert [n.round for n in talk.to(1, msg.Notice)] == [T]
    assert talk.state.versions == [0]


def test_a_merge_names_only_contributors_and_their_weights() -> None:
    """REPORTED A5: K = 2 of M = 4; nothing is divided by M."""
    talk = begun(learners=4, quorum=2)
    talk.step(0, MS, g=2, count=2)
    talk.step(3, MS, g=2)
    talk.answer(0, T)
    talk.answer(3, T)
    order = next(o for o in talk.orders if isinstance(o, Merge))
    assert (order.learners, order.weights) == ([0, 3], [300.0**2 / 3, 200.0**2 / 2])


def test_all_weights_zero_skip_the_round_and_one_zero_is_a_zero() -> None:
    """REPORTED A1."""
    talk = begun(learners=3, quorum=3)
    for m in range(3):
        talk.step(m, MS, g=2)
    for m in range(3):
        talk.says(m, talk.puppets[m].fragment(T, tokens=0))
    assert [r.reason for r in talk.of(Kind.ROUND_SKIPPED)] == ["weights_zero"]
    assert talk.state.versions == [0] and not [o for o in talk.orders if isinstance(o, Merge)]
    assert sum(isinstance(o, Release) for o in talk.orders) == 3, "their payloads are let go"
    for m in range(3):
        talk.step(m, MS, g=4)
    for m in range(3):
        talk.says(m, talk.puppets[m].fragment(4, **({"tokens": 0} if m == 1 else {})))
    order = next(o for o in talk.orders if isinstance(o, Merge))
    assert order.learners == [0, 1, 2] and order.weights[1] == 0.0 and min(order.weights[0], order.weights[2]) > 0


def test_a_merge_that_is_not_finite_closes_the_round_without_a_version() -> None:
    talk = begun()
    talk.step(0, MS, g=2)
    talk.answer(0, T)
    talk.merged(finite=False)
    assert [r.reason for r in talk.of(Kind.ROUND_SKIPPED)] == ["nonfinite"]
    assert talk.state.versions == [0] and not [o for o in talk.orders if isinstance(o, Commit)]


def test_a_round_keeps_the_arithmetic_of_its_opening() -> None:
    talk = begun(merge="rda", outer_rate=0.5)
    talk.give(ev.SettingsAsked({"merge": "mean", "outer_rate": 0.25}, "test"))
    talk.step(0, MS, g=2)
    talk.answer(0, T)
    order = talk.merged()
    talk.committed()
    assert (order.settings["merge"], order.settings["outer_rate"]) == ("rda", 0.5)
    talk.fold(0)
    talk.step(0, MS, g=4)
    talk.answer(0, 4)
    order = talk.merged()
    assert (order.settings["merge"], order.settings["outer_rate"]) == ("mean", 0.25)
    assert [r.setting for r in talk.of(Kind.MERGED)] == [0, 1]


def test_a_run_that_is_stopped_gives_up_what_gathers_and_ends_what_merges() -> None:
    talk = begun(period=4, fragments=4, overlap=2)
    talk.step(0, MS, g=1)
    talk.answer(0, 1, p=1)
    assert {t: talk.state_of(t) for t in talk.state.rounds} == {1: "MERGING", 2: "OPEN"}
    talk.give(ev.StopAsked("asked"))
    assert [(r.round, r.reason) for r in talk.of(Kind.ROUND_ABORTED)] == [(2, "run_ended")]
    assert [n.round for n in talk.to(1, msg.Notice)] == [2], "an aborted round sends NOTICE too"
    assert not [o for o in talk.orders if isinstance(o, Release)], "the arithmetic still reads the contributions"
    for m in range(2):
        talk.says(m, talk.puppets[m].metadata(leaving=True))
    assert not talk.of(Kind.RUN_ENDED), "the end waits for the merge"
    talk.finish_round()
    assert [r.kind for r in talk.records][-2:] == [Kind.MERGE_COMMITTED, Kind.RUN_ENDED]
