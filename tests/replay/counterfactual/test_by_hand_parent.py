"""Counterfactuals of a run whose learners people started: no supervisor told how they came and went."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.engine.hands import ByHand
from tests.engine.real_runs import Journal, until
from workbench.protocol.records import Kind, process_of
from workbench.replay.counterfactual.by_hand import by_hand
from workbench.replay.machines import rerun_machines
from workbench.tape import open_tape

VICTIM = 2
SLACK_NS = 50_000_000
"""What a busy machine holds up on the way is not on the tape."""


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three learners by hand; one is killed, started again by hand, and merged again."""
    values: dict[str, Any] = {"learners": 3, "quorum": 2, "eligibility": "paced", "lead": 12, "snapshot_every_s": 0.0}
    hand = ByHand(tmp_path_factory.mktemp("hand"), **values)
    try:
        started = [hand.learner(m, f"learner-{m}") for m in range(3)]
        for m in range(3):
            hand.stepping(m, 1)
        journal = Journal(hand.run_path)
        until(lambda: journal.is_merged(VICTIM, 0), "it is merged")
        hand.merged(20)
        started[VICTIM].kill()
        until(lambda: hand.state(VICTIM)["state"] != "connected", "its loss is seen")
        hand.merged(20)
        hand.learner(VICTIM, "again")
        hand.stepping(VICTIM, 2)
        hand.merged(40)
        hand.syncer.interrupt()
        hand.syncer.ended()
    finally:
        hand.close()
    yield hand.run_path


VICTIM = 2
SLACK_NS = 50_000_000
"""What a busy machine holds up on the way is not on the tape."""


def test_the_tape_knows_the_starts_from_what_the_syncer_saw(parent: Path) -> None:
    records = open_tape(parent).wb.records()
    assert {r.peer for r in records if r.kind == Kind.PROCESS_STARTED}.isdisjoint(map(process_of, range(3)))
    found = by_hand(records)
    assert [process.learner for process in found].count(VICTIM) == 2 and len(found) == 4
    first, again = (process for process in found if process.learner == VICTIM)
    assert first.joined_ns < first.lost_ns < again.joined_ns and first.how == "socket"


def test_without_a_change_the_parent_comes_out_bit_for_bit(parent: Path, tmp_path: Path) -> None:
    found = wb.what_if(parent, out=tmp_path / "same")
    assert found.kind == "arithmetic"
    assert found.tape.wb.records() == open_tape(parent).wb.records()


def test_simulated_again_from_the_start_everybody_comes_and_goes_as_then(parent: Path, tmp_path: Path) -> None:
    found = wb.what_if(parent, resimulate=True, out=tmp_path / "child")
    assert found.calibration is not None
    print(f"{found.calibration.text()}; merges {found.calibration.merges}; drawn {found.drawn}")
    assert not {"start", "adopt"} & found.drawn.keys(), "the tape has them, under the numbers of its own processes"
    here, there = found.tape.wb.records(), open_tape(parent).wb.records()
    came, comes = ([r for r in made if r.kind == Kind.LEARNER_JOINED] for made in (there, here))
    assert [r.peer for r in comes] == [r.peer for r in came]
    assert max(abs(a.time_ns - b.time_ns) for a, b in zip(came, comes, strict=True)) < SLACK_NS
    gone, again = (process for process in by_hand(there) if process.learner == VICTIM)
    down = [
        r for r in here if r.kind == Kind.MERGED and gone.lost_ns + SLACK_NS < r.detail["pull_ns"] < again.joined_ns
    ]
    assert down and not any(VICTIM in r.detail["learners"] for r in down)
    assert any(VICTIM in r.detail["learners"] for r in here if r.kind == Kind.MERGED and r.time_ns > again.joined_ns)


def test_another_quorum_waits_for_the_one_that_was_down(parent: Path, tmp_path: Path) -> None:
    found = wb.what_if(parent, quorum=3, out=tmp_path / "child")
    assert found.kind == "schedule"
    here, there = found.tape.wb.records(), open_tape(parent).wb.records()
    without = [sum(r.kind == Kind.MERGED and len(r.detail["learners"]) < 3 for r in made) for made in (here, there)]
    assert without[0] == 0 and without[1] > 0
    joined = [sorted(r.peer for r in made if r.kind == Kind.LEARNER_JOINED) for made in (here, there)]
    assert joined[0] == joined[1]
    report = rerun_machines(found.tape)
    assert report.equal, report.first_difference
    assert wb.replay(found.path).verify().bit_exact


def test_had_the_process_not_been_killed_it_would_have_gone_on(parent: Path, tmp_path: Path) -> None:
    found = wb.what_if(parent, without=["end:2"], out=tmp_path / "child")
    assert found.kind == "schedule" and found.without[0].startswith("end of L2's process at ")
    there, here = open_tape(parent).wb.records(), found.tape.wb.records()
    assert there[found.branch_event].kind == Kind.LEARNER_LOST and there[found.branch_event].peer == process_of(VICTIM)
    assert [r.peer for r in here if r.kind == Kind.LEARNER_JOINED].count(process_of(VICTIM)) == 1
    gone, again = (process for process in by_hand(there) if process.learner == VICTIM)
    meanwhile = [r for r in here if r.kind == Kind.MERGED and gone.lost_ns < r.time_ns < again.joined_ns]
    assert any(VICTIM in r.detail["learners"] for r in meanwhile)
    report = rerun_machines(found.tape)
    assert report.equal, report.first_difference
    assert wb.replay(found.path).verify().bit_exact
    with pytest.raises(
        wb.ConfigError, match="no process of a learner ended so without a fault; the tape has end of L2"
    ):
        wb.what_if(parent, without=["end:1"], out=tmp_path / "none")


def test_another_merge_rule_from_a_round_on(parent: Path, tmp_path: Path) -> None:
    rounds = [r.round for r in open_tape(parent).wb.records() if r.kind == Kind.ROUND_OPENED]
    found = wb.what_if(parent, merge="mean", from_round=rounds[len(rounds) // 2], out=tmp_path / "child")
    assert found.kind == "arithmetic" and found.branch_event is not None
    assert wb.replay(found.path).verify().bit_exact
