"""The schedule of a tape kept, everything computed anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.replay.counterfactual.conftest import Told, check, told
from tests.replay.runs import SECOND, live
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind, Record
from workbench.replay.machines import rerun_machines
from workbench.tape import open_tape, read_journal

CHANGES: list[dict[str, Any]] = [
    {"weights": "uniform"},
    {"fold": "delay_corrected"},
    {"outer": "sgd", "outer_rate": 0.8, "fold": "blend", "inner.rate": 5e-3},
]


def losses(records: list[Record]) -> list[float]:
    return [r.value for r in records if r.kind == Kind.EVALUATED]


@pytest.mark.parametrize("name", ["quiet", "faulty"])
def test_without_a_change_the_parent_comes_out_bit_for_bit(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    parent: Told = request.getfixturevalue(name)
    found = wb.what_if(parent.path, out=tmp_path / "same")
    assert (found.kind, found.branch_event, found.seeds) == ("arithmetic", None, 1)
    assert (found.unlike, found.to_json()["bit_exact"], found.to_json()["changed"]) == (0, True, False)
    there, here = read_journal(parent.path / "journal"), read_journal(tmp_path / "same" / "journal")
    assert here.records == there.records
    assert here.inputs == there.inputs
    assert found.parent == found.children[0]
    assert set(found.tape.wb.marks().values.tolist()) == {0}, "all of it is the parent's"
    assert found.tape.attrs["parent"]["run_id"] == parent.tape.attrs["run_id"] != found.tape.attrs["run_id"]
    assert found.tape.attrs["parent"]["path"] == str(parent.path)


def test_another_merge_rule_gives_what_a_run_with_it_gives_on_the_same_schedule(quiet: Told, tmp_path: Path) -> None:
    found = wb.what_if(quiet.path, merge="mean", seeds=3, out=tmp_path / "mean")
    trained = live(quiet.run.config.set(merge="mean"))
    assert found.tape.wb.records() == trained.records, "virtual time does not depend on what is computed"
    assert (found.kind, found.seeds, found.seeds_asked, found.unlike) == ("arithmetic", 1, 3, None)
    assert found.children[0]["val_loss_last"] != found.parent["val_loss_last"]
    marks = found.tape.wb.marks()
    kinds = found.tape["events"].dataset["kind"].values
    assert (marks.values[kinds == Kind.MERGED] == 2).all()
    assert (marks.values[kinds == Kind.PULL_SENT] == 0).all()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: " ".join(change))
def test_every_arithmetic_change_is_exact_and_replays(faulty: Told, change: dict[str, Any], tmp_path: Path) -> None:
    found = wb.what_if(faulty.path, change, out=tmp_path / "child")
    assert (found.kind, found.branch_event) == ("arithmetic", None)
    records = found.tape.wb.records()
    assert [(r.kind, r.process, r.seq, r.time_ns) for r in records] == [
        (r.kind, r.process, r.seq, r.time_ns) for r in faulty.run.records
    ]
    assert losses(records)[0] == losses(faulty.run.records)[0], "nothing was merged yet"
    assert losses(records)[-1] != losses(faulty.run.records)[-1]
    assert wb.replay(found.path).verify().bit_exact


def test_a_fold_that_keeps_more_counts_more(quiet: Told, tmp_path: Path) -> None:
    found = wb.what_if(quiet.path, fold="delay_corrected", out=tmp_path / "child")
    assert found.children[0]["tokens_merged"] > found.parent["tokens_merged"]
    weights = found.tape.wb.merge_learner()["weight"].values
    assert np.nanmax(weights) > np.nanmax(quiet.tape.wb.merge_learner()["weight"].values)


def test_a_decision_that_depends_on_values_is_taken_again(faulty: Told, tmp_path: Path) -> None:
    """With the guard off, the poisoned contribution is taken, where it was refused: from there the schedule is new."""
    dropped = [
        i for i, r in enumerate(faulty.run.records) if r.kind == Kind.FRAGMENT_DROPPED and r.reason == "nonfinite"
    ]
    found = wb.what_if(faulty.path, guard_nonfinite=False, out=tmp_path / "child")
    assert found.kind == "schedule"
    assert found.branch_event == dropped[0]
    assert wb.replay(found.path).report.bit_exact
    assert open_tape(found.path).wb.records()[: dropped[0]] == faulty.run.records[: dropped[0]]


NUMERIC = (
    Fault("scale", int(1.2 * SECOND), learner=0, count=2, factor=-5.0),
    Fault("flip", int(1.6 * SECOND), learner=2, persistent=True),
    Fault("nan", int(2.0 * SECOND), learner=1),
)


@pytest.fixture(scope="module")
def poisoned(text_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Numeric faults that no guard refuses, and one that the guard does."""
    return told(text_path, tmp_path_factory.mktemp("poisoned") / "run", NUMERIC, quorum=2, rounds=30)


def test_numeric_faults_that_are_gone_leave_what_a_run_without_them_gives(poisoned: Told, tmp_path: Path) -> None:
    found = wb.what_if(poisoned.path, without=["scale", "flip"], out=tmp_path / "child")
    assert (found.kind, found.branch_event) == ("arithmetic", None)
    clean = live(poisoned.run.config, NUMERIC[2:])
    columns = ("kind", "process", "time_ns", "fragment", "round", "version", "step", "value", "digest", "tokens")
    rows = [
        sorted(tuple(getattr(r, c) for c in columns) for r in records)
        for records in (found.tape.wb.records(), clean.records)
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) < len(poisoned.run.records)
    assert rerun_machines(found.tape).equal
    assert wb.replay(found.path).verify().bit_exact


def test_a_numeric_fault_that_was_refused_was_a_decision(poisoned: Told, tmp_path: Path) -> None:
    """Without it the guard refuses nothing: another schedule, from the fault on."""
    found = wb.what_if(poisoned.path, without=["nan"], out=tmp_path / "child")
    assert (found.kind, found.asked) == ("schedule", "arithmetic")
    assert found.branch_event is not None
    assert poisoned.run.records[found.branch_event].kind == Kind.FAULT_INJECTED
    assert not any(r.kind == Kind.FRAGMENT_DROPPED and r.reason == "nonfinite" for r in found.tape.wb.records())
    assert wb.replay(found.path).verify().bit_exact


SCHEDULE = (
    "kind",
    "process",
    "incarnation",
    "time_ns",
    "peer",
    "fragment",
    "round",
    "base_version",
    "step",
    "global_step",
)
FROM: dict[str, dict[str, Any]] = {
    "merge": {"merge": "mean"},
    "outer": {"outer": "sgd", "outer_rate": 0.8},
    "learners": {"fold": "delay_corrected", "inner.rate": 2e-3},
    "blend": {"fold": "blend", "weights": "uniform"},
}


@pytest.mark.parametrize("name", FROM)
@pytest.mark.parametrize("parent", ["quiet", "faulty"])
def test_arithmetic_from_a_round_on_shares_what_is_before_and_keeps_the_schedule(
    parent: str, name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    run: Told = request.getfixturevalue(parent)
    found = wb.what_if(run.path, FROM[name], from_round=16, out=tmp_path / "child")
    there, here = run.run.records, found.tape.wb.records()
    at = found.branch_event
    assert (found.kind, found.asked, found.drawn, found.used, found.seeds) == ("arithmetic", "arithmetic", {}, {}, 1)
    assert at is not None and found.shared_events == at > 0
    assert here[:at] == there[:at], "bit for bit"
    change = here[at]
    assert (change.kind, change.detail) == (Kind.SETTING_CHANGED, {"values": FROM[name], "who": "what-if"})
    changed = [r for r in here if r.kind in (Kind.SETTING_CHANGED, Kind.SETTING_APPLIED)]
    kept = [r for r in there if r.kind in (Kind.SETTING_CHANGED, Kind.SETTING_APPLIED)]
    rows = [
        [tuple(getattr(r, c) for c in SCHEDULE) for r in records if r not in ours]
        for records, ours in ((there, kept), (here, changed))
    ]
    assert rows[0] == rows[1]
    merges = [[(r.round, r.digest) for r in records if r.kind == Kind.MERGED] for records in (there, here)]
    older = sum(round_ < 16 for round_, _ in merges[0])
    if name != "learners":  # what learners change they change for the rounds in flight, too
        assert merges[1][:older] == merges[0][:older]
    assert all(a != b for a, b in zip(merges[0][older + 4 :], merges[1][older + 4 :], strict=True))
    marks = found.tape.wb.marks().values
    assert set(marks[:at].tolist()) == {0} and set(marks[at:].tolist()) == {0, 2}
    assert found.tape.attrs["parent"]["event"] == at
    report = rerun_machines(found.tape)
    assert report.equal, report.first_difference
    assert wb.replay(found.path).verify().bit_exact
    assert found.children[0]["val_loss_last"] != found.parent["val_loss_last"]


def test_learners_apply_a_change_at_the_first_boundary_at_which_they_have_heard_of_it(
    faulty: Told, tmp_path: Path
) -> None:
    """Whoever is started later begins with it; all of them fold by the new rule."""
    found = wb.what_if(faulty.path, fold="blend", from_round=8, out=tmp_path / "child")
    records = found.tape.wb.records()
    change = next(r for r in records if r.kind == Kind.SETTING_CHANGED and r.detail["who"] == "what-if")
    applied = [r for r in records if r.kind == Kind.SETTING_APPLIED and r.setting == change.setting]
    assert {r.process for r in applied} == {3, 4, 5}
    for r in applied:
        assert r.clock[0] >= change.seq and r.time_ns >= change.time_ns
        assert r.detail["values"]["fold"] == "blend"
        folds = [x for x in records if x.process == r.process and x.kind == Kind.UPDATE_FOLDED and x.seq > r.seq]
        assert {x.reason for x in folds if x.base_version >= 0 and not x.detail["anew"]} <= {"blend"}


def test_a_decision_that_arithmetic_from_a_round_on_takes_otherwise_changes_the_schedule(
    quiet: Told, tmp_path: Path
) -> None:
    """Outer steps that make a model diverge give updates that are not finite: refused, where nothing was before."""
    found = wb.what_if(quiet.path, {"outer_rate": 100.0, "inner.rate": 1000.0}, from_round=12, out=tmp_path / "child")
    assert (found.asked, found.kind) == ("arithmetic", "schedule")
    change = next(r for r in check(found, quiet) if r.kind == Kind.SETTING_CHANGED)
    assert change.round >= 12 and found.branch_event is not None


def test_a_question_of_a_question_is_answered_like_any_other(quiet: Told, tmp_path: Path) -> None:
    child = wb.what_if(quiet.path, {"merge": "mean", "fold": "blend"}, from_round=12, out=tmp_path / "child")
    assert wb.what_if(child.path, out=tmp_path / "same").unlike == 0
    grandchild = wb.what_if(child.path, from_round=30, quorum=3, out=tmp_path / "grandchild")
    assert (grandchild.kind, grandchild.differing) == ("schedule", 0)
    assert grandchild.rebuilt > 100
