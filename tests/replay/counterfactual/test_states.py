"""Counterfactuals of runs whose learners took states from peers, and of which snapshots were taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.replay.counterfactual.conftest import Told, check
from tests.replay.runs import SECOND, config_of, live, tape_of
from workbench.cli.pages.what_if import drawn
from workbench.protocol.faults import Fault
from workbench.protocol.records import SYNCER, Kind, process_of
from workbench.replay.machines import rerun_machines

KILLS = (
    Fault("kill", SECOND, learner=1, for_ns=SECOND // 3),
    Fault("nan", 3 * SECOND // 2, learner=2),
    Fault("scale", 3 * SECOND // 2, learner=2, count=2, factor=-3.0),
    Fault("kill", 2 * SECOND, learner=0, for_ns=SECOND // 3),
)


def told(text: Path, folder: Path, losses: Any = (), **keys: Any) -> Told:
    config = config_of(text, rounds=40, recovery="peer", codec="bf16", eval_every=12, **keys)
    run = live(config, KILLS, snapshots=folder / "snapshots", losses=losses)
    return Told(run, folder / "run", tape_of(run, folder / "run"))


@pytest.fixture(scope="module")
def peers(text_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Two learners are killed, and take the states of others."""
    return told(text_path, tmp_path_factory.mktemp("peers"))


@pytest.fixture(scope="module")
def kept(text_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The same with snapshots."""
    return told(text_path, tmp_path_factory.mktemp("kept"), snapshot_every=7)


def kinds(found: Told) -> set[int]:
    return {r.kind for r in found.run.records}


@pytest.mark.parametrize("name", ["peers", "kept"])
def test_without_a_change_the_parent_comes_out_bit_for_bit(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    parent: Told = request.getfixturevalue(name)
    assert any(r.kind == Kind.STATE_ADOPTED and r.reason == "peer" for r in parent.run.records)
    assert name == "peers" or {Kind.SNAPSHOT_RECORDED, Kind.SNAPSHOT_COMPLETED} <= kinds(parent)
    found = wb.what_if(parent.path, out=tmp_path / "same")
    assert (found.kind, found.branch_event, found.unlike) == ("arithmetic", None, 0)
    assert found.tape.wb.inputs() == parent.tape.wb.inputs()


@pytest.mark.parametrize("change", [{"merge": "mean"}, {"fold": "delay_corrected", "inner.rate": 5e-3}], ids=str)
@pytest.mark.parametrize("name", ["peers", "kept"])
def test_an_arithmetic_change_is_exact_through_states_that_were_handed_on(
    name: str, change: dict[str, Any], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    parent: Told = request.getfixturevalue(name)
    found = wb.what_if(parent.path, change, out=tmp_path / "child")
    assert (found.kind, found.branch_event) == ("arithmetic", None)
    assert found.children[0]["val_loss_last"] != found.parent["val_loss_last"]
    there, here = (
        [r for r in records if r.kind == Kind.STATE_ADOPTED and r.reason == "peer"]
        for records in (parent.run.records, found.tape.wb.records())
    )
    assert len(there) == len(here) and all(a.digest != b.digest for a, b in zip(there, here, strict=True))
    assert rerun_machines(found.tape).equal
    assert wb.replay(found.path).verify().bit_exact


def test_numeric_faults_that_are_gone_renumber_what_copies_name(peers: Told, tmp_path: Path) -> None:
    found = wb.what_if(peers.path, without=["scale"], out=tmp_path / "child")
    assert (found.kind, found.branch_event) == ("arithmetic", None)
    assert rerun_machines(found.tape).equal
    assert wb.replay(found.path).verify().bit_exact


def test_a_kill_before_any_state_was_taken_can_be_left_out(peers: Told, tmp_path: Path) -> None:
    found = wb.what_if(peers.path, without=["kill:1"], out=tmp_path / "child")
    assert found.kind == "schedule"
    assert found.children[0]["tokens_processed"] > 0
    assert [r.reason for r in found.tape.wb.records() if r.kind == Kind.STATE_ADOPTED].count("peer") == 1
    assert wb.replay(found.path).verify().bit_exact


def test_a_run_with_peers_is_simulated_again_from_its_start(peers: Told, tmp_path: Path) -> None:
    found = wb.what_if(peers.path, resimulate=True, out=tmp_path / "child")
    assert found.calibration is not None
    assert found.calibration.same_set >= 0.9
    assert found.calibration.interval_error <= 0.1


@pytest.mark.parametrize("name", ["peers", "kept"])
def test_a_branch_behind_a_state_that_was_taken(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    parent: Told = request.getfixturevalue(name)
    found = wb.what_if(parent.path, without=["kill:0"], seeds=2, out=tmp_path / "child")
    records = check(found, parent)
    taken = [r for r in records if r.kind == Kind.STATE_ADOPTED and r.reason == "peer"]
    assert [r.process for r in taken] == [process_of(1)], "the only kill that is left is that of L1"
    assert (found.differing, found.seeds) == (0, 2)
    assert found.rebuilt > 100
    assert name == "peers" or any(r.kind == Kind.SNAPSHOT_COMPLETED for r in records[found.shared_events :])


PLACES = {
    "a state is asked for": (Kind.STATE_ASKED, SYNCER),
    "a state is copied": (Kind.STATE_COPIED, -1),
    "a state has left": (Kind.STATE_LEFT, -1),
    "a state is on its way": (Kind.STATE_SENT, SYNCER),
    "a state was taken": (Kind.STATE_ADOPTED, process_of(0)),
    "a snapshot begins": (Kind.SNAPSHOT_RECORDED, SYNCER),
    "a snapshot is in a learner": (Kind.SNAPSHOT_RECORDED, process_of(2)),
    "a part of a snapshot has left": (Kind.STATE_LEFT, process_of(2)),
    "a snapshot is written": (Kind.SNAPSHOT_COMPLETED, SYNCER),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_branch_in_the_middle_of_a_state_or_snapshot(place: str, kept: Told, tmp_path: Path) -> None:
    """Nothing that is under way is lost: whoever waits for a state gets it, snapshots are completed."""
    kind, process = PLACES[place]
    mine = [r for r in kept.run.records if r.kind == kind and process in (-1, r.process)]
    found = wb.what_if(kept.path, added=[stall_at(kept, mine[-1].time_ns + 1)], out=tmp_path / "child")
    records = check(found, kept)
    assert found.differing == 0
    for what in (Kind.SNAPSHOT_RECORDED, Kind.SNAPSHOT_COMPLETED, Kind.SNAPSHOT_ABANDONED):
        there, here = (
            sum(r.kind == what and r.process == SYNCER for r in made) for made in (kept.run.records, records)
        )
        assert abs(there - here) <= 1, what
    peers = [r.process for r in records if r.kind == Kind.STATE_ADOPTED and r.reason == "peer"]
    assert peers == [process_of(1), process_of(0)]


def stall_at(parent: Told, time_ns: int) -> Fault:
    """A short stall of the learner that is never killed, at a time of the tape."""
    began = next(r.time_ns for r in parent.run.records if r.kind == Kind.ROUNDS_BEGAN)
    return Fault("stall", time_ns - began, learner=2, for_ns=SECOND // 50)


def test_durations_of_states_that_the_tape_does_not_have_are_drawn_and_said(peers: Told, tmp_path: Path) -> None:
    began = next(r.time_ns for r in peers.run.records if r.kind == Kind.ROUNDS_BEGAN)
    more = Fault("kill", 5 * SECOND // 2 - began, learner=1, for_ns=SECOND // 3)
    found = wb.what_if(peers.path, added=[more], out=tmp_path / "child")
    check(found, peers)
    assert {"copy", "state", "passed", "taken"} <= found.drawn.keys()
    count = sum(found.drawn.get(kind, 0) for kind in ("adopt", "copy", "state", "passed", "taken"))
    assert f"{count} of " in drawn(found) and "states copied, handed over and taken up" in drawn(found)


@pytest.fixture(scope="module")
def returned(text_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The same, lost with all its processes and gone back to a snapshot."""
    return told(text_path, tmp_path_factory.mktemp("returned"), losses=[(2.6, 0.2, True)], snapshot_every=7)


def went_back(parent: Told) -> int:
    """Event at which it did."""
    return next(i for i, r in enumerate(parent.run.records) if r.epoch > 0)


def test_a_run_that_went_back_comes_out_bit_for_bit(returned: Told, tmp_path: Path) -> None:
    found = wb.what_if(returned.path, out=tmp_path / "same")
    assert (found.kind, found.branch_event, found.unlike) == ("arithmetic", None, 0)
    assert found.tape.wb.inputs() == returned.tape.wb.inputs()


@pytest.mark.parametrize("change", [{"merge": "mean"}, {"fold": "delay_corrected", "inner.rate": 5e-3}], ids=str)
def test_an_arithmetic_change_is_exact_through_a_return(change: dict[str, Any], returned: Told, tmp_path: Path) -> None:
    found = wb.what_if(returned.path, change, out=tmp_path / "child")
    assert (found.kind, found.branch_event) == ("arithmetic", None)
    assert found.children[0]["val_loss_last"] != found.parent["val_loss_last"]
    assert rerun_machines(found.tape).equal
    assert wb.replay(found.path).verify().bit_exact


def test_a_branch_behind_a_return(returned: Told, tmp_path: Path) -> None:
    """The last rounds were opened behind it, those before it were opened twice: there the second time counts."""
    last = max(r.round for r in returned.run.records if r.kind == Kind.ROUND_OPENED)
    found = wb.what_if(returned.path, from_round=last - 4, quorum=3, out=tmp_path / "child")
    check(found, returned)
    assert found.shared_events > went_back(returned)
    assert found.differing == 0


def test_a_branch_before_a_return_goes_back_as_well(returned: Told, tmp_path: Path) -> None:
    """Losing everything is nobody's decision: it comes again at its time, and the run goes back to what it has."""
    found = wb.what_if(returned.path, without=["kill:0"], out=tmp_path / "child")
    records = check(found, returned)
    assert found.shared_events < went_back(returned)
    resumed = [r for r in records if r.kind == Kind.SYNCER_STARTED and r.reason == "resume"]
    there = returned.run.records[went_back(returned)]
    assert [r.time_ns for r in resumed] == [there.time_ns]
    assert resumed[0].detail["cut"]["snapshot"] > 0
    assert sum(found.tape.wb.at(-1).versions) == 40, "merges that were not taken back"


def test_a_run_that_went_back_is_simulated_again_from_its_start(returned: Told, tmp_path: Path) -> None:
    found = wb.what_if(returned.path, resimulate=True, out=tmp_path / "child")
    assert found.calibration is not None
    assert found.calibration.same_set >= 0.9
    assert found.calibration.interval_error <= 0.1


def test_a_run_that_was_lost_and_lost_nothing(text_path: Path, tmp_path: Path) -> None:
    parent = told(text_path, tmp_path, losses=[(2.6, 0.2, False)])
    assert wb.what_if(parent.path, out=tmp_path / "same").unlike == 0
    found = wb.what_if(parent.path, without=["kill:0"], out=tmp_path / "child")
    assert sum(r.kind == Kind.SYNCER_STARTED for r in check(found, parent)) == 2
    last = max(r.round for r in parent.run.records if r.kind == Kind.ROUND_OPENED)
    check(wb.what_if(parent.path, from_round=last - 4, quorum=3, out=tmp_path / "late"), parent)
