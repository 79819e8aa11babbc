"""Counterfactuals of a run of real processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.engine.real_runs import Journal, tiny, until
from workbench.protocol.faults import Fault, FaultPlan
from workbench.protocol.records import Kind, Record
from workbench.replay.machines import rerun_machines
from workbench.tape import open_tape


@pytest.fixture(scope="module")
def parent(text_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three learners, one of them killed on the way; it comes back with the state of a peer."""
    folder = tmp_path_factory.mktemp("real") / "run"
    data: dict[str, Any] = {"data.source": "path", "data.path": str(text_path)}
    config = tiny(quorum=2, eligibility="paced", eval_every=30, recovery="peer", snapshot_every=20, **data)
    with wb.launch(
        config, out=folder, faults=FaultPlan((Fault("kill", 0, learner=1, at_merge=30, for_ns=10**8),))
    ) as run:
        run.wait(rounds=20)
        journal = Journal(folder)
        until(lambda: has_adopted(journal.records()), "the victim has a peer's state")
        until(lambda: journal.has_merged(1, Kind.LEARNER_JOINED, 2.0), "it is merged again")
        run.wait(rounds=run.status()["merges"] + 30)
    return folder


def has_adopted(records: list[Record]) -> bool:
    return any(r.kind == Kind.STATE_ADOPTED and r.reason == "peer" for r in records)


def merges_of(records: list[Record]) -> list[Record]:
    return [r for r in records if r.kind == Kind.MERGED]


def merged_of(records: list[Record], learner: int) -> int:
    """Tokens of a learner that were merged, of all fragments."""
    rows = (zip(r.detail["learners"], r.detail["c_tokens"], strict=True) for r in merges_of(records))
    return sum(tokens for row in rows for m, tokens in row if m == learner)


def test_without_a_change_the_parent_comes_out_bit_for_bit(parent: Path, tmp_path: Path) -> None:
    found = wb.what_if(parent, out=tmp_path / "same")
    assert found.kind == "arithmetic"
    assert found.tape.wb.records() == open_tape(parent).wb.records()
    assert found.tape.wb.inputs() == open_tape(parent).wb.inputs()


def test_another_merge_rule_keeps_the_schedule(parent: Path, tmp_path: Path) -> None:
    found = wb.what_if(parent, merge="mean", out=tmp_path / "mean")
    assert found.kind == "arithmetic"
    there, here = open_tape(parent).wb.records(), found.tape.wb.records()
    assert [(r.kind, r.process, r.seq, r.time_ns) for r in there] == [
        (r.kind, r.process, r.seq, r.time_ns) for r in here
    ]
    assert wb.replay(found.path).verify().bit_exact


def test_the_timing_model_gives_the_merges_of_the_real_run(parent: Path, tmp_path: Path) -> None:
    found = wb.what_if(parent, resimulate=True, out=tmp_path / "child")
    assert found.calibration is not None
    print(f"{found.calibration.text()}; merges {found.calibration.merges}; drawn {found.drawn}")
    assert has_adopted(found.tape.wb.records())
    assert found.calibration.same_set >= 0.9
    assert found.calibration.interval_error <= 0.1


def test_without_the_kill_more_is_merged(parent: Path, tmp_path: Path) -> None:
    found = wb.what_if(parent, without=["kill"], seeds=2, out=tmp_path / "child")
    assert found.kind == "schedule"
    at = found.branch_event
    assert at is not None
    assert open_tape(parent).wb.records()[at].kind == Kind.FAULT_INJECTED
    before = merged_of(open_tape(parent).wb.records(), 1)
    assert min(merged_of(open_tape(path).wb.records(), 1) for path in found.runs) > before
    assert min(child["goodput"] for child in found.children) > found.parent["goodput"]
    assert found.drawn["step"] > 0
    assert found.learners_per_core is not None
    print(f"{found.differing} of {found.rebuilt} records of learners came out otherwise; drawn {found.drawn}")
    assert found.differing <= 0.05 * found.rebuilt
    assert wb.replay(found.path).verify().bit_exact


def test_a_branch_behind_snapshots_and_the_state_that_a_peer_gave(parent: Path, tmp_path: Path) -> None:
    records = open_tape(parent).wb.records()
    taken = next(i for i, r in enumerate(records) if r.kind == Kind.STATE_ADOPTED and r.reason == "peer")
    assert any(r.kind == Kind.SNAPSHOT_COMPLETED for r in records)
    behind = [r.round for r in records[taken:] if r.kind == Kind.ROUND_OPENED]
    found = wb.what_if(parent, from_round=behind[len(behind) // 2], quorum=3, out=tmp_path / "child")
    assert found.kind == "schedule" and found.shared_events > taken
    assert found.tape.wb.records()[: found.shared_events] == records[: found.shared_events]
    print(f"{found.differing} of {found.rebuilt} records of learners came out otherwise; drawn {found.drawn}")
    assert found.differing <= 0.05 * found.rebuilt
    assert found.children[0]["merges"] > 0.5 * found.parent["merges"]
    assert rerun_machines(found.tape).equal
    assert wb.replay(found.path).verify().bit_exact
