"""Counterfactuals of a run of real processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.engine.real_runs import tiny
from workbench.protocol.faults import Fault, FaultPlan
from workbench.protocol.records import Kind, Record
from workbench.tape import open_tape


@pytest.fixture(scope="module")
def parent(text_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three learners, one of them killed on the way."""
    folder = tmp_path_factory.mktemp("real") / "run"
    data: dict[str, Any] = {"data.source": "path", "data.path": str(text_path)}
    config = tiny(rounds=90, quorum=2, eligibility="paced", eval_every=30, **data)
    plan = FaultPlan((Fault("kill", 0, learner=1, at_merge=30),))
    with wb.launch(config, out=folder, faults=plan) as run:
        run.wait(rounds=90)
    return folder


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
    there, here = merges_of(open_tape(parent).wb.records()), merges_of(found.tape.wb.records())
    assert len(there) == len(here)
    alike = np.mean([a.detail["learners"] == b.detail["learners"] for a, b in zip(there, here, strict=True)])
    gaps = [np.diff([r.time_ns for r in made]) for made in (there, here)]
    error = np.median(np.abs(gaps[1] - gaps[0]) / gaps[0])
    print(f"same set in {alike:.3f} of the merges, median error of the intervals {error:.4f}, {found.drawn}")
    assert alike >= 0.9
    assert error <= 0.1


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
