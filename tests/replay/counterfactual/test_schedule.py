"""Virtual time from the branch on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.replay.counterfactual.conftest import Told, check, told
from tests.replay.runs import SECOND
from tests.replay.tapes import with_attribute
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind, Record
from workbench.tape import open_tape


def merges_of(records: list[Record]) -> list[Record]:
    return [r for r in records if r.kind == Kind.MERGED]


def included(records: list[Record], learner: int) -> float:
    made = merges_of(records)
    return sum(learner in r.detail["learners"] for r in made) / len(made)


def test_without_the_grace_window_a_slow_learner_takes_part_less(one_slow: Told, tmp_path: Path) -> None:
    found = wb.what_if(one_slow.path, grace="none", out=tmp_path / "child")
    records = check(found, one_slow)
    at = found.branch_event
    assert at is not None
    assert one_slow.run.records[at].kind == Kind.QUORUM_REACHED, "the window is part of that record"
    assert included(records, 2) < 0.5 * included(one_slow.run.records, 2)
    assert found.children[0]["participation"] < found.parent["participation"]
    assert found.differing == 0


@pytest.mark.parametrize(
    "change", [{"quorum": 3}, {"codec": "bf16"}, {"eligibility": "paced"}, {"merge": "mean", "quorum": 1}]
)
def test_other_changes_of_schedule(quiet: Told, change: dict[str, Any], tmp_path: Path) -> None:
    found = wb.what_if(quiet.path, change, out=tmp_path / "child")
    assert found.kind == "schedule"
    if "merge" in change:  # the parent's part is computed anew: only its schedule is shared
        assert found.children[0]["merges"] == 36
        assert wb.replay(found.path).verify().bit_exact
    else:
        check(found, quiet, replay="codec" in change)


def test_a_branch_in_the_answer_to_a_learner_that_asks_to_take_part(text_path: Path, tmp_path: Path) -> None:
    """Its welcome is still to be sent, and it asks no second time."""
    late = [Fault("late", 0, learner=m, for_ns=(2 + m) * SECOND) for m in range(3)]
    parent = told(text_path, tmp_path / "parent", late, quorum=2, rounds=8, start_limit_s=1.0)
    found = wb.what_if(parent.path, quorum=3, out=tmp_path / "child")
    records = check(found, parent)
    assert records[found.shared_events].kind == Kind.QUORUM_LOST, "rounds begin, and the first learner is not enough"
    assert [r.reason for r in records if r.kind == Kind.LEARNER_JOINED] == ["process"] * 3
    assert found.differing == 0


@pytest.mark.parametrize("change", [{"lead": 1}, {"learners": 2, "quorum": 1}])
def test_what_learners_do_makes_another_run_from_the_start(quiet: Told, change: dict[str, Any], tmp_path: Path) -> None:
    found = wb.what_if(quiet.path, change, out=tmp_path / "child")
    assert (found.kind, found.branch_event, found.shared_events) == ("schedule", 0, 0)
    check(found, quiet)


def test_a_change_that_changes_no_decision_leaves_the_parent(quiet: Told, tmp_path: Path) -> None:
    found = wb.what_if(quiet.path, start_limit_s=60.0, out=tmp_path / "limit")
    assert found.children[0] == found.parent
    found = wb.what_if(quiet.path, pull_limit_min_s=0.5, out=tmp_path / "pull")
    assert (found.kind, found.branch_event, found.shared_events) == ("schedule", None, len(quiet.run.records))
    assert found.tape.wb.records() == quiet.run.records


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_branch_at_which_nothing_changes_goes_on_as_the_parent_did(quiet: Told, share: float, tmp_path: Path) -> None:
    """A fault on nobody cuts the tape: every machine is found again, and virtual time with keyed durations agrees."""
    end = quiet.run.records[-1].time_ns
    fault = Fault("slow", int(end * share), learner=0, for_ns=1, factor=1.0)
    found = wb.what_if(quiet.path, added=[fault], out=tmp_path / "child")
    records = check(found, quiet)
    assert found.differing == 0
    assert found.rebuilt > 0
    assert [(r.round, r.detail["learners"], r.time_ns) for r in merges_of(records)] == [
        (r.round, r.detail["learners"], r.time_ns) for r in merges_of(quiet.run.records)
    ]
    assert [r.digest for r in merges_of(records)] == [r.digest for r in merges_of(quiet.run.records)]


@pytest.mark.parametrize("name", ["one_slow", "faulty", "killed"])
def test_resimulation_gives_the_merges_of_a_virtual_parent(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    parent: Told = request.getfixturevalue(name)
    found = wb.what_if(parent.path, resimulate=True, out=tmp_path / "child")
    there, here = merges_of(parent.run.records), merges_of(found.tape.wb.records())
    assert len(there) == len(here)
    alike = np.mean([a.detail["learners"] == b.detail["learners"] for a, b in zip(there, here, strict=True)])
    gaps = [np.diff([r.time_ns for r in made]) for made in (there, here)]
    error = np.median(np.abs(gaps[1] - gaps[0]) / np.maximum(gaps[0], 1))
    print(f"{name}: same set in {alike:.3f} of the merges, median error of the intervals {error:.4f}, {found.drawn}")
    assert alike >= 0.9
    assert error <= 0.1
    assert found.calibration is not None
    assert found.calibration.merges == [len(there), len(here)]
    assert found.calibration[1:] == pytest.approx((error, alike))
    assert name != "faulty" or wb.replay(found.path).verify().bit_exact


def test_without_a_kill_more_is_merged_and_what_was_drawn_is_said(killed: Told, tmp_path: Path) -> None:
    found = wb.what_if(killed.path, without=["kill:1"], out=tmp_path / "child")
    check(found, killed, replay=False)
    assert found.branch_event is not None
    assert killed.run.records[found.branch_event].kind == Kind.FAULT_INJECTED
    assert found.children[0]["tokens_merged"] > found.parent["tokens_merged"]
    assert found.children[0]["goodput"] > found.parent["goodput"]
    assert found.drawn["step"] > 0, "the steps that it would have made are not on the tape"
    assert found.drawn["step"] < found.used["step"]
    assert not any(r.kind == Kind.FAULT_INJECTED for r in found.tape.wb.records())


def test_several_seeds_give_an_interval(killed: Told, tmp_path: Path) -> None:
    found = wb.what_if(killed.path, without=[1], seeds=3, out=tmp_path / "children")
    assert [path.name for path in found.runs] == ["seed-0", "seed-1", "seed-2"]
    told = found.to_json()
    assert (told["class"], told["seeds"]) == ("schedule", 3)
    spread = found.interval["tokens_merged"]
    assert spread is not None
    assert spread[1] <= spread[0] <= spread[2]
    assert spread[1] > found.parent["tokens_merged"]
    steps = [[r for r in open_tape(path).wb.records() if r.kind == Kind.STEP_ENDED] for path in found.runs]
    times = {tuple(r.time_ns for r in made) for made in steps}
    assert len(times) == 3, "each has draws of its own"
    assert wb.replay(found.runs[2]).verify().bit_exact
    one = wb.what_if(killed.path, without=[1], out=tmp_path / "one")
    assert one.children[0] == found.children[0], "a copy of what comes before the branch is as good as the original"


def test_a_fault_that_is_moved_strikes_at_its_new_time(killed: Told, tmp_path: Path) -> None:
    found = wb.what_if(killed.path, moved={1: 1.0}, out=tmp_path / "child")
    records = check(found, killed, replay=False)
    began = next(r.time_ns for r in killed.run.records if r.kind == Kind.ROUNDS_BEGAN)
    strikes = [r.time_ns for r in records if r.kind == Kind.FAULT_INJECTED]
    assert strikes == [began + SECOND]
    assert found.added == ("kill of L1 at 1.00 s",)
    lost = next(r.time_ns for r in records if r.kind == Kind.LEARNER_LOST)
    assert strikes[0] < lost < strikes[0] + SECOND


def test_a_change_from_a_round_on_is_asked_for_when_that_is_opened(quiet: Told, tmp_path: Path) -> None:
    """Before it is opened, at the same time: what acts on rounds that are opened later acts on it, too."""
    found = wb.what_if(quiet.path, from_round=12, quorum=3, merge="mean", out=tmp_path / "child")
    records = check(found, quiet, replay=False)
    change = next(r for r in records if r.kind == Kind.SETTING_CHANGED)
    opened = next(r for r in records if r.kind == Kind.ROUND_OPENED and r.round >= 12)
    assert change.detail == {"values": {"quorum": 3, "merge": "mean"}, "who": "what-if"}
    assert change.time_ns == opened.time_ns
    assert found.shared_events <= records.index(change) < records.index(opened)
    assert opened.setting == change.setting


def test_a_fault_tied_to_a_round_follows_it(text_path: Path, tmp_path: Path) -> None:
    """The scenario ties a kill to round 14: with a quorum of all, rounds come later, and so does the kill."""
    scenario = '[[fault]]\nkind = "kill"\nlearner = 0\nat_round = 14\nfor_s = 0.5\n'
    parent = told(text_path, tmp_path / "run", [Fault("kill", 0, learner=0, for_ns=SECOND // 2, at_round=14)], quorum=1)
    tape = with_attribute(parent.tape, "faults", {"chaos": "", "scenario": scenario})
    found = wb.what_if(tape, eligibility="step", grace="all", quorum=3, out=tmp_path / "child")
    for records in (parent.run.records, found.tape.wb.records()):
        opened = next(r.time_ns for r in records if r.kind == Kind.ROUND_OPENED and r.round >= 14)
        strikes = [r.time_ns for r in records if r.kind == Kind.FAULT_INJECTED]
        assert strikes == [opened]


@pytest.mark.parametrize("trigger", [{"at_round": 20}, {"at_merge": 14}])
def test_a_fault_that_is_added_at_a_round_or_a_merge_shares_what_is_before(
    trigger: dict[str, Any], quiet: Told, tmp_path: Path
) -> None:
    added = Fault("kill", 0, learner=1, for_ns=SECOND // 2, **trigger)
    found = wb.what_if(quiet.path, added=[added], out=tmp_path / "child")
    records = check(found, quiet, replay=False)
    at = next(i for i, r in enumerate(records) if r.kind == Kind.FAULT_INJECTED)
    before = records[:at]
    opened, merges = max(r.round for r in before), len(merges_of(before))
    assert opened >= trigger.get("at_round", 0) and merges >= trigger.get("at_merge", 0)
    assert found.shared_events > 0.2 * len(quiet.run.records)
    assert opened <= trigger.get("at_round", opened) and merges <= trigger.get("at_merge", merges)


@pytest.mark.parametrize("trigger", [{"at_round": 20}, {"at_merge": 14}])
def test_a_kill_that_a_round_or_a_merge_brought_can_be_left_out(
    trigger: dict[str, Any], text_path: Path, tmp_path: Path
) -> None:
    key, number = next(iter(trigger.items()))
    scenario = f'[[fault]]\nkind = "kill"\nlearner = 1\n{key} = {number}\nfor_s = 1.5\n'
    kill = Fault("kill", 0, learner=1, for_ns=3 * SECOND // 2, **trigger)
    parent = told(text_path, tmp_path / "run", [kill], quorum=2, rounds=36, eval_every=0)
    tape = with_attribute(parent.tape, "faults", {"chaos": "", "scenario": scenario})
    found = wb.what_if(tape, without=["kill"], out=tmp_path / "child")
    records = check(found, parent, replay=False)
    assert not any(r.kind == Kind.FAULT_INJECTED for r in records)
    assert found.children[0]["tokens_merged"] > found.parent["tokens_merged"]


def test_settings_that_wait_for_ever_end_the_run_and_say_so(killed: Told, tmp_path: Path) -> None:
    """Whoever is removed for good cannot be waited for: the run is ended, not hung."""
    gone = Fault("kill", SECOND, learner=0)
    found = wb.what_if(killed.path, quorum=3, added=[gone], out=tmp_path / "child")
    ended = next(r for r in found.tape.wb.records() if r.kind == Kind.RUN_ENDED)
    assert ended.reason == "no merges"
    assert found.children[0]["merges"] < found.parent["merges"]
    assert wb.replay(found.path).verify().bit_exact
