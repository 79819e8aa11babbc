from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.runs import CONFIG, FAULTS, SECOND, began, ended, healed, joined, lost, merged, rec, simulated
from workbench.analysis.arrays.exclusions import counts, standings
from workbench.analysis.arrays.participation import participation
from workbench.analysis.from_records import tables
from workbench.analysis.reports.participation import report
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind, Record, process_of


def at(kind: Kind, time_s: float, learner: int, round_: int = 1, **columns: Any) -> Record:
    return rec(kind, time_s, round=round_, fragment=0, peer=process_of(learner), **columns)


def grace_ended(time_s: float, left_out: dict[int, str]) -> Record:
    return rec(Kind.GRACE_ENDED, time_s, round=1, fragment=0, detail={"admitted": [0], "left_out": left_out})


def told(*between: Record, included: tuple[int, ...] = (0,)) -> list[str]:
    """Standing of learner 1 in a merge at 5 s whose round was opened at 1 s."""
    fleet = [record for m in (0, 1) for record in (joined(m), healed(m, 0.5))]
    opened = rec(Kind.ROUND_OPENED, 1, round=1, fragment=0)
    merge = merged(1, 5, 1, included)
    records = [began(0), *fleet, opened, *(r for r in between if r.time_ns < 5 * SECOND), merge]
    after = [r for r in between if r.time_ns >= 5 * SECOND]
    found = tables([*records, *after, ended(9)])
    return [str(word) for word in standings(found, participation(found))[0]]


@pytest.mark.parametrize(
    ("between", "standing"),
    [
        ([], "unknown"),
        ([grace_ended(3, {1: "not_fresh"})], "not_fresh"),
        ([grace_ended(3, {1: "not_fresh"}), grace_ended(4, {1: "base_behind"})], "base_behind"),
        ([grace_ended(3, {}), at(Kind.PULL_SENT, 3, 1)], "unanswered"),
        ([at(Kind.PULL_SENT, 3, 1), at(Kind.FRAGMENT_DROPPED, 6, 1, reason="late")], "late"),
        ([at(Kind.PULL_SENT, 3, 1), at(Kind.REFUSAL_ARRIVED, 4, 1, reason="update_unfolded")], "update_unfolded"),
        ([at(Kind.FRAGMENT_DROPPED, 4, 1, reason="late", round_=7), grace_ended(3, {1: "no_steps"})], "no_steps"),
        ([lost(1, 4)], "down"),
        ([lost(1, 4, "heartbeat")], "disconnected"),
    ],
)
def test_the_reason_of_a_learner_that_is_not_in_a_merge(between: list[Record], standing: str) -> None:
    assert told(*between) == ["included", standing]


def test_a_learner_under_a_fault_is_not_expected() -> None:
    stall = rec(
        Kind.FAULT_INJECTED, 2, 1, peer=process_of(1), reason="stall", detail={"until_ns": 3 * SECOND, "effect": 1}
    )
    assert told(stall) == ["included", "fault"]
    assert told(stall, included=(0, 1)) == ["included", "included_unexpected"]


def test_one_that_came_within_the_round_was_healing() -> None:
    assert told(lost(1, 2), joined(1, 2.5, 2), healed(1, 3)) == ["included", "healing"]


@pytest.mark.parametrize(
    "extra", [(), (Fault("nan", 4 * SECOND, learner=0), Fault("kill_syncer", 9 * SECOND, for_ns=SECOND))]
)
def test_every_learner_adds_up_to_the_merges(extra: tuple[Fault, ...]) -> None:
    found = tables(simulated((*FAULTS, *extra)))
    whole = participation(found)
    assert [sum(mine.values()) for mine in counts(standings(found, whole))] == [CONFIG.rounds] * CONFIG.learners
    story = report(found, CONFIG)
    for row in story["by_learner"]:
        kept_out = row["left_out_count"] + row["not_expected_count"]
        assert row["included"] + row["included_unexpected"] + kept_out == row["merges"] == CONFIG.rounds
        assert row["included"] + row["left_out_count"] == row["expected"]
        assert row["contributed"] == row["included"] + row["included_unexpected"]
    assert story["expected"] - story["included"] == sum(story["left_out"].values())
    assert story["not_expected"]["down"] > 0
    assert "unknown" not in story["left_out"]
    assert len(story["over_time"]["participation"]) == len(story["over_time"]["edges_s"]) - 1
