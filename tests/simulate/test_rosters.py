"""Learners that are added and removed while a virtual run goes on, with their books."""

from __future__ import annotations

import pytest

from tests.simulate.worlds import MS, SECOND, config_of, contributors, finished, of_kind, world_of
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind, process_of
from workbench.tape.ledger import Ledger

CONFIG = config_of({"start_s": 0.2}, learners=3, rounds=80, period=6, fragments=6, overlap=2)
ADD, REMOVE = Fault("add", SECOND), Fault("remove", 3 * SECOND, learner=1)


def test_an_added_learner_is_merged_and_a_removed_one_is_not_any_more() -> None:
    world = finished(world_of(CONFIG, [ADD, REMOVE]))
    merges = of_kind(world, Kind.MERGED)
    (removed,) = [r for r in of_kind(world, Kind.LEARNER_LOST) if r.reason == "removed"]
    assert any(3 in learners for learners in contributors(world))
    late = [r for r in merges if r.time_ns > removed.time_ns + SECOND]
    assert len(late) > 10 and all(1 not in r.detail["learners"] for r in late)
    ends = [(r.peer, r.reason) for r in of_kind(world, Kind.PROCESS_ENDED) if r.time_ns < late[0].time_ns]
    assert ends == [(process_of(1), "exit 0")], "it left by itself"


def test_the_books_of_both_balance() -> None:
    world = finished(world_of(CONFIG, [ADD, REMOVE]))
    ledger = Ledger(3, 6, [1] * 6)
    for record in world.records:
        ledger.apply(record)
        ledger.check_last()
    assert ledger.processed(3) > 0 and ledger.learners == 4
    assert ledger.by_reason()["lost"]["removal"] > 0


@pytest.mark.parametrize("fault", [Fault("cut", 2900 * MS, 1, 30 * SECOND), Fault("stall", 2900 * MS, 1, 30 * SECOND)])
def test_one_that_does_not_hear_of_it_is_killed(fault: Fault) -> None:
    world = finished(world_of(CONFIG, [REMOVE, fault]))
    (ended,) = [r for r in of_kind(world, Kind.PROCESS_ENDED) if (r.peer, r.reason) == (process_of(1), "SIGKILL")]
    assert 3 * SECOND + 2 * SECOND <= ended.time_ns <= 6 * SECOND


def test_one_that_was_killed_is_not_started_again() -> None:
    world = finished(world_of(CONFIG, [Fault("kill", 2 * SECOND, 1, 3 * SECOND), REMOVE]))
    assert [r.value for r in of_kind(world, Kind.PROCESS_STARTED) if r.peer == process_of(1)] == [1.0]


def test_a_removal_that_the_quorum_forbids_has_no_effect() -> None:
    world = finished(world_of(CONFIG.set(quorum=3), [REMOVE]))
    (struck,) = of_kind(world, Kind.FAULT_INJECTED)
    assert struck.detail["effect"] == 0
    assert of_kind(world, Kind.SETTING_REFUSED)[0].reason.startswith("without L1 2 learners are left for quorum = 3")
