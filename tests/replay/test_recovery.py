"""States from peers, snapshots and resumes replay bit for bit, and the machines make their records again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.replay.runs import FAULTS, SECOND, Live, config_of, live, replayed, tape_of
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines

KILLS = (Fault("kill", SECOND, learner=1, for_ns=SECOND // 3), Fault("kill", 2 * SECOND, learner=0, for_ns=SECOND // 3))


def reasons(run: Live, kind: Kind) -> set[str]:
    return {record.reason for record in run.records if record.kind == kind}


def count(run: Live, kind: Kind) -> int:
    return sum(record.kind == kind for record in run.records)


def test_a_state_from_a_peer_is_adopted_and_replayed(text_path: Path) -> None:
    run = live(config_of(text_path, rounds=40, recovery="peer"), KILLS)
    adopted = [r for r in run.records if r.kind == Kind.STATE_ADOPTED and r.reason == "peer"]
    assert len(adopted) == 2
    for record in adopted:
        left = next(r for r in run.records if r.kind == Kind.STATE_LEFT and r.version == record.version)
        assert (left.process, left.digest) == (record.peer, record.digest)
    report = replayed(run)
    assert report.bit_exact, report.first_difference
    assert replayed(run, order=5).bit_exact


@pytest.mark.parametrize("fold", ["overwrite", "delay_corrected"])
def test_a_run_that_goes_back_to_a_snapshot_replays(text_path: Path, tmp_path: Path, fold: str) -> None:
    config = config_of(text_path, rounds=40, recovery="peer", fold=fold, snapshot_every=10, codec="bf16")
    run = live(config, KILLS, snapshots=tmp_path / "snapshots", losses=[(2.6, 0.2, True), (3.4, 0.1, False)])
    assert count(run, Kind.RESTORED) >= 3, "the syncer, and the learners that lived when it was taken"
    assert "snapshot" in reasons(run, Kind.STATE_ADOPTED)
    assert {record.epoch for record in run.records} == {0, 1}
    for order in ("journal", 3):
        report = replayed(run, order=order)
        assert report.bit_exact, report.first_difference
        assert report.final_digest == run.digest


def test_the_machines_make_the_records_of_a_resumed_run_again(text_path: Path, tmp_path: Path) -> None:
    config = config_of(text_path, rounds=60, recovery="peer", snapshot_every=8)
    run = live(config, FAULTS, snapshots=tmp_path / "snapshots", losses=[(4.4, 0.2, True), (5.2, 0.1, False)])
    tape = tape_of(run, tmp_path / "run")
    report = rerun_machines(tape)
    assert report.equal, report.first_difference
    assert report.lives >= 3
    session = replay(tape)
    assert session.report.bit_exact, session.report.first_difference
    assert tape.wb.records()[: len(run.records)] == run.records
