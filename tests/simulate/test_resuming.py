"""Runs in virtual time that are lost and go on: nothing merged is lost, and restored state is really used."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.replay.runs import Live, config_of, live
from tests.tape.headers import rewrite_header
from workbench.config import ConfigError
from workbench.protocol.faults import NO_FAULTS, Fault, FaultPlan
from workbench.protocol.plans import facts_of
from workbench.protocol.records import Kind
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.simulate.resuming import resume_virtual
from workbench.simulate.training_run import Progress, train_virtual
from workbench.tape import open_tape
from workbench.tape.going_on import resumable, snapshot_numbers
from workbench.tape.ledger import Ledger
from workbench.tape.run_folder import RunFolder

MS = 1_000_000


class Lost(Exception):
    """Everything is gone at this point."""


@pytest.fixture
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "counting.bin"
    path.write_bytes(b"".join(b"%d " % number for number in range(60_000)))
    return path


def losses_by_step(run: Live, epoch: int) -> dict[tuple[int, int], float]:
    return {(r.process, r.step): r.value for r in run.records if r.kind == Kind.STEP_ENDED and r.epoch == epoch}


def test_r22_in_lock_step_a_resumed_run_is_the_unbroken_one_bit_for_bit(text: Path, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"rounds": 24, "lead": 0, "quorum": 3, "overlap": 1, "codec": "bf16", "recovery": "peer"}
    whole = live(config_of(text, **keys))
    broken = live(config_of(text, **keys), snapshots=tmp_path / "s", wanted=[1.05], losses=[(1.6, 0.2, True)])
    unbroken, again = losses_by_step(whole, 0), losses_by_step(broken, 1)
    restored = [r for r in broken.records if r.kind == Kind.RESTORED and r.process]
    assert len(restored) == 3 and min(r.step for r in restored) >= 5
    assert set(again) == {key for key in unbroken if key[1] > next(r.step for r in restored if r.process == key[0])}
    assert again == {key: unbroken[key] for key in again}, "one loss in another bit: the state was not the snapshot's"
    assert broken.digest == whole.digest


def test_r22_the_first_step_after_a_resume_has_the_loss_of_the_unbroken_run(text: Path, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"rounds": 40, "recovery": "peer"}
    whole = live(config_of(text, **keys))
    broken = live(config_of(text, **keys), snapshots=tmp_path / "s", wanted=[1.05], losses=[(1.6, 0.2, True)])
    unbroken, again = losses_by_step(whole, 0), losses_by_step(broken, 1)
    for record in (r for r in broken.records if r.kind == Kind.RESTORED and r.process):
        first = (record.process, record.step + 1)
        assert again[first] == unbroken[first]


def lose_after(merges: int) -> Any:
    def look(progress: Progress) -> None:
        if progress.merges >= merges:
            raise Lost

    return look


def lost_run(text: Path, out: Path, merges: int = 30, faults: FaultPlan = NO_FAULTS, **keys: Any) -> Path:
    """A run that was killed after so many merges, its tape behind its journal."""
    config = config_of(text, **{"rounds": 80, "recovery": "peer", **keys})
    with pytest.raises(Lost):
        train_virtual(config, out, faults, lose_after(merges))
    return out


def check(run: Path) -> list[int]:
    """Replay, machines, ledger; epochs of the tape."""
    tape = open_tape(run)
    assert tape.wb.closed
    report = replay(tape).report
    assert report.bit_exact, report.first_difference
    machines = rerun_machines(tape)
    assert machines.equal, machines.first_difference
    records = tape.wb.records()
    ledger = Ledger(0, 4, [1] * 4)
    for record in records:
        ledger.apply(record)
    ledger.check()
    return sorted({record.epoch for record in records})


def test_intact_slots_lose_no_merge(text: Path, tmp_path: Path) -> None:
    run = lost_run(text, tmp_path / "run", snapshot_every=10)
    before = resumable(run)
    assert resume_virtual(run).merges == 80
    assert check(run) == [0]
    records = open_tape(run).wb.records()
    merged = [(r.fragment, r.version) for r in records if r.kind == Kind.MERGED]
    assert len(merged) == len(set(merged)) == 80 and before.merges >= 30
    after = records[len(before.records) :]
    assert any(r.kind == Kind.STATE_ADOPTED and r.reason == "snapshot" for r in after), "moments of the newest snapshot"
    with pytest.raises(ConfigError, match="nothing is left"):
        resume_virtual(run)


def test_a_run_that_was_ended_in_order_goes_on(text: Path, tmp_path: Path) -> None:
    pressed: list[int] = []

    def press_once(progress: Progress) -> None:
        if progress.merges >= 30 and not pressed:
            pressed.append(progress.merges)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train_virtual(config_of(text, rounds=80), tmp_path / "run", progress=press_once)
    assert [r.reason for r in open_tape(tmp_path / "run").wb.records() if r.kind == Kind.RUN_ENDED] == ["interrupted"]
    assert resume_virtual(tmp_path / "run").merges == 80
    assert check(tmp_path / "run") == [0]


def test_damaged_slots_go_back_to_the_newest_snapshot(text: Path, tmp_path: Path) -> None:
    run = lost_run(text, tmp_path / "run", snapshot_every=10)
    newest = snapshot_numbers(resumable(run))[-1]
    RunFolder(run).slots.unlink()
    resume_virtual(run)
    assert check(run) == [0, 1]
    restored = [r for r in open_tape(run).wb.records() if r.kind == Kind.RESTORED]
    assert {r.value for r in restored} == {float(newest)}


def test_a_snapshot_that_is_asked_for_rolls_tokens_back(text: Path, tmp_path: Path) -> None:
    run = lost_run(text, tmp_path / "run", snapshot_every=10, snapshots_kept=0)
    first = snapshot_numbers(resumable(run))[0]
    with pytest.raises(ConfigError, match=r"there is no snapshot 99 .*there are: 1, 2"):
        resume_virtual(run, 99)
    resume_virtual(run, first)
    assert check(run) == [0, 1]
    ledger = Ledger(0, 4, [1] * 4)
    for record in open_tape(run).wb.records():
        ledger.apply(record)
    assert ledger.totals()["tokens_rolled_back"] > 0


def test_without_slots_and_without_a_snapshot_nothing_can_go_on(text: Path, tmp_path: Path) -> None:
    run = lost_run(text, tmp_path / "run")
    RunFolder(run).slots.unlink()
    with pytest.raises(ConfigError, match="no snapshot; train it anew"):
        resume_virtual(run)


def test_r19_what_a_crash_left_of_a_snapshot_is_in_nobodys_way(text: Path, tmp_path: Path) -> None:
    run = lost_run(text, tmp_path / "run", snapshot_every=10)
    number = snapshot_numbers(resumable(run))[-1]
    debris = run / "snapshots" / f".draft-{number + 1}-999999999"
    shutil.copytree(run / "snapshots" / str(number), debris)
    resume_virtual(run)
    assert not debris.exists()
    assert check(run) == [0]


PLANNED = FaultPlan(
    (
        Fault("cut", 100 * MS, 2, 0),
        Fault("kill", 200 * MS, 0, 300 * MS, every_ns=700 * MS, times=4),
        Fault("loss", 300 * MS, 1, 10_000 * MS, share=0.2),
        Fault("nan", 0, 1, at_merge=50),
        Fault("kill_syncer", 0, -1, 100 * MS, at_merge=60),
        Fault("kill", 900_000 * MS, 1, 300 * MS),
    )
)


def strikes(run: Path) -> list[tuple[int, str, bool]]:
    """Number in the plan, kind and effect of what struck; each fault of the run has a number of its own."""
    found = [r for r in open_tape(run).wb.records() if r.kind == Kind.FAULT_INJECTED]
    assert [r.detail["fault"] for r in found] == list(range(1, len(found) + 1))
    return [(r.detail["planned"], r.reason, bool(r.detail["effect"])) for r in found]


def test_planned_faults_go_on_where_the_run_was_lost(text: Path, tmp_path: Path) -> None:
    run = lost_run(text, tmp_path / "run", 30, PLANNED, snapshot_every=10)
    before = resumable(run)
    cut = next(r for r in before.records if r.kind == Kind.FAULT_INJECTED and r.reason == "cut")
    skipped: list[str] = []
    resume_virtual(run, say=skipped.append)
    assert check(run) == [0]
    found = strikes(run)
    assert sorted(found) == sorted(
        [(1, "cut", True), *4 * [(2, "kill", True)], (3, "loss", True), (4, "nan", True), (5, "kill_syncer", True)]
    ), "each planned fault as often as it was planned; the last is behind the end of the run"
    assert not skipped
    after = open_tape(run).wb.records()[len(before.records) :]
    assert not any(2 in r.detail["learners"] for r in after if r.kind == Kind.MERGED), "its link is still cut"
    assert cut.time_ns > 0


def test_back_at_a_snapshot_the_rest_of_the_plan_goes_on_too(text: Path, tmp_path: Path) -> None:
    run = lost_run(text, tmp_path / "run", 55, PLANNED, snapshot_every=10, snapshots_kept=0)
    resume_virtual(run, snapshot_numbers(resumable(run))[0])
    assert check(run) == [0, 1]
    assert [number for number, _, _ in strikes(run)].count(4) == 1, "it struck in what was rolled back"
    assert [number for number, _, _ in strikes(run)].count(5) == 1


def test_a_resume_can_leave_the_plan_out(text: Path, tmp_path: Path) -> None:
    run = lost_run(text, tmp_path / "run", 30, PLANNED, snapshot_every=10)
    resume_virtual(run, faults=False)
    assert check(run) == [0]
    assert {kind for _, kind, _ in strikes(run)} == {"cut", "kill", "loss"}
    merged = [r.detail["learners"] for r in open_tape(run).wb.records() if r.kind == Kind.MERGED]
    assert 2 not in merged[29] and 2 in merged[-1], "its link is whole again"


def test_what_came_due_while_nothing_ran_is_skipped_and_said(text: Path, tmp_path: Path) -> None:
    run = lost_run(text, tmp_path / "run", 30, snapshot_every=10)
    found = resumable(run)
    due = FaultPlan((Fault("kill", 0, 1, 300 * MS, at_merge=found.merges), Fault("kill", 0, 2, 300 * MS, at_merge=70)))
    rewrite_header(run, faults=facts_of(due, found.config, "virtual"))
    skipped: list[str] = []
    resume_virtual(run, say=skipped.append)
    assert check(run) == [0]
    assert strikes(run) == [(1, "kill", False), (2, "kill", True)]
    assert skipped == [f"skipped, since nothing ran when they were due: kill of L1 at merge {found.merges}"]
