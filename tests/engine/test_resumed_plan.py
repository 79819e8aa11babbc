"""A run of real processes that was lost goes on with the rest of its plan of faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.real_runs import GUARD_S, Journal, kill_everything, of_kind, tiny, until
from tests.tape.headers import rewrite_header
from workbench.engine.launch import launch
from workbench.engine.resume import resume
from workbench.protocol.faults import Fault, FaultPlan
from workbench.protocol.plans import facts_of
from workbench.protocol.records import Kind, Record
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.tape.going_on import rest_for, resumable

MS, SECOND = 10**6, 10**9
FAR_NS = 3_000 * SECOND
PLAN = (
    Fault("slow", 0, 1, 0, 1.5),
    Fault("kill", 0, 0, 100 * MS, at_merge=10),
    Fault("kill", 0, 2, 100 * MS, at_merge=200),
    Fault("stall", 0, 0, 50 * MS, at_merge=20, every_ns=300 * MS, times=6),
    Fault("kill", FAR_NS, 1, SECOND),
)
DURING_THE_START = 6


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One compile cache for all processes of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def planned(records: list[Record], number: int) -> list[Record]:
    """Strikes of a planned fault."""
    return [r for r in of_kind(records, Kind.FAULT_INJECTED) if r.detail.get("planned") == number]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One run in two sittings, with a fault of its plan behind the last record of the first."""
    path = tmp_path_factory.mktemp("runs") / "run"
    journal = Journal(path)
    run = launch(tiny(period=12, lead=6), path, faults=FaultPlan(PLAN))
    run.wait(rounds=25, timeout_s=GUARD_S)
    until(lambda: bool(planned(journal.records(), 4)), "the fault that repeats has struck")
    kill_everything(run)
    found = resumable(path)
    rest = rest_for(found)
    due_ns = max(r.time_ns for r in found.records) - rest.began_ns + MS
    rewrite_header(path, faults=facts_of(FaultPlan((*PLAN, Fault("kill", due_ns, 1, SECOND))), found.config, "real"))
    journal = Journal(path)
    with resume(path) as run:
        until(lambda: run.status()["learners"][1]["acting"] == ["slow"], "what lasted acts on")
        until(lambda: len(planned(journal.records(), 4)) == 6, "it has struck as often as was planned")
        until(lambda: bool(planned(journal.records(), 3)), "the kill at a later merge has struck")
        until(lambda: bool(planned(journal.records(), DURING_THE_START)), "what passed is recorded")
        skipped = run.status()["skipped"]
        assert run.heal(1) == 1
        until(lambda: journal.ended("slow", 1), "what lasted is over")
    assert run.outcome() == (0, "")
    return {"path": path, "rest": rest, "skipped": skipped, "records": journal.records()}


def test_every_planned_fault_struck_as_often_as_was_planned(told: dict[str, Any]) -> None:
    counts = [len(planned(told["records"], number)) for number in range(1, len(PLAN) + 1)]
    assert counts == [1, 1, 1, 6, 0], "the last lies behind the end"
    numbers = [r.detail["fault"] for r in of_kind(told["records"], Kind.FAULT_INJECTED)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_rest_is_what_the_journal_did_not_show(told: dict[str, Any]) -> None:
    to_come = [fault.planned for fault in told["rest"].to_come]
    assert {3, 5} <= set(to_come) and not {1, 2} & set(to_come)
    assert [hand.fault.kind for hand in told["rest"].acting if hand.fault.kind == "slow"] == ["slow"]


def test_what_was_due_while_nothing_ran_is_skipped_recorded_and_said(told: dict[str, Any]) -> None:
    (record,) = planned(told["records"], DURING_THE_START)
    assert record.detail["skipped"] and not record.detail["effect"]
    found = [r for r in of_kind(told["records"], Kind.FAULT_INJECTED) if r.detail.get("skipped")]
    assert len(told["skipped"]) == len(found), "one that repeats may be due in the same moments"
    assert any(said.startswith("kill of L1 at ") for said in told["skipped"])


def test_the_whole_tape_replays_bit_for_bit(told: dict[str, Any]) -> None:
    report = replay(told["path"])
    assert report.bit_exact, report.first_difference
    again = rerun_machines(told["path"])
    assert again.equal, again.first_difference
