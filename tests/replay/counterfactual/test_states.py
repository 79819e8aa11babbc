"""Counterfactuals of runs whose learners took states from peers, and of which snapshots were taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.replay.counterfactual.conftest import Told
from tests.replay.runs import SECOND, config_of, live, tape_of
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind
from workbench.replay.machines import rerun_machines
from workbench.tape import TapeError

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


def test_a_branch_behind_a_state_that_was_taken_is_refused_with_what_can_be_asked(peers: Told, tmp_path: Path) -> None:
    with pytest.raises(
        TapeError, match=r"the branch lies at event .*: ask for a change that leaves the tape earlier"
    ) as no:
        wb.what_if(peers.path, without=["kill:0"], out=tmp_path / "child")
    assert "\n" not in str(no.value) and "--resimulate" in str(no.value)


def test_a_run_that_went_back_to_a_snapshot_is_refused(text_path: Path, tmp_path: Path) -> None:
    parent = told(text_path, tmp_path, losses=[(2.6, 0.2, True)], snapshot_every=7)
    with pytest.raises(TapeError, match="the run went back to a snapshot") as refused:
        wb.what_if(parent.path, merge="mean", out=tmp_path / "child")
    assert "\n" not in str(refused.value)
