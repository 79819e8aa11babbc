"""Real processes: kills, a killed syncer, a killed supervisor, a dead owner; the tape replays bit for bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from tests.engine.real_runs import GUARD_S, lives, of_kind, records_of, tiny, until
from workbench.analysis.summary import summary
from workbench.cli.main import main
from workbench.cli.train import is_balanced
from workbench.config import ConfigError
from workbench.engine import control
from workbench.engine.launch import Run, RunEnded, attach, launch
from workbench.protocol.records import SYNCER, Kind, learner_of
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.tape import open_tape
from workbench.training.flat import fragmentation_of

pytestmark = pytest.mark.usefixtures("own_cache")

GONE_WITHIN_S = 5.0


class Struck(NamedTuple):
    """A run that was struck and then stopped, with what was seen of it while it went on."""

    path: Path
    pids: list[int]
    runtime: str
    lost: tuple[int, int]


def learner_is_back(run: Run, learner: int, number: int) -> bool:
    """Whether the given start of a learner has made a step."""
    one = run.status()["learners"][learner]
    return bool(one["number"] == number and one["state"] == "running" and one.get("stepped") == number)


def merged(run: Run, more: int) -> None:
    """Wait for so many further merges."""
    run.wait(rounds=run.status()["merges"] + more, timeout_s=GUARD_S)


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Struck:
    """Three learners; two of them killed, one stalled, the syncer killed; then stopped in order."""
    path = tmp_path_factory.mktemp("runs") / "struck"
    with launch(tiny(eval_every=100), path) as run:
        run.wait(rounds=5, timeout_s=GUARD_S)
        run.kill(1, down_s=0.1)
        merged(run, 5)
        run.kill(2, down_s=0.1)
        until(lambda: learner_is_back(run, 1, 2) and learner_is_back(run, 2, 2), "both learners step again")
        run.stall(0, 0.3)
        before = run.status()["merges"]
        run.kill("syncer", down_s=0.01)
        until(lambda: run.status()["syncer"]["number"] == 2 and run.status()["merges"] > before, "it merges again")
        after = run.status()["merges"]
        merged(run, 60)
        assert run.set(grace_gamma=0.5) == 1
        with pytest.raises(ConfigError, match="fragments cannot change"):
            run.set(fragments=2)
        merged(run, 5)
        pids = [control.address_of(path).pid, *run.status()["processes"]]
        runtime = control.address_of(path).runtime
        run.stop()
        assert run.outcome() == (0, "")
    return Struck(path, pids, runtime, (before, after))


def test_nothing_is_left_of_a_run_that_was_stopped(struck: Struck) -> None:
    until(lambda: not any(lives(pid) for pid in struck.pids), "all processes are gone", 10.0)
    assert not Path(struck.runtime).exists()
    assert not (struck.path / "control.json").exists()
    with pytest.raises(ConfigError, match="is not running"):
        attach(struck.path)


def test_killed_learners_come_back_and_are_merged(struck: Struck) -> None:
    records = records_of(struck.path)
    for learner in (1, 2):
        joins = [i for i, r in enumerate(records) if r.kind == Kind.LEARNER_JOINED and learner_of(r.peer) == learner]
        second = next(i for i in joins if records[i].value == 2.0)
        assert any(learner in r.detail["learners"] for r in of_kind(records[second:], Kind.MERGED))
        steps = [r.step for r in of_kind(records, Kind.STEP_ENDED) if learner_of(r.process) == learner]
        assert steps == list(range(1, len(steps) + 1)), "own steps are consecutive over both processes"


def test_a_killed_syncer_loses_no_merge(struck: Struck) -> None:
    records = records_of(struck.path)
    versions: dict[int, int] = {}
    for record in of_kind(records, Kind.MERGED):
        assert record.version == versions.get(record.fragment, 0) + 1
        versions[record.fragment] = record.version
    assert struck.lost[1] > struck.lost[0]
    assert [r.reason for r in of_kind(records, Kind.SYNCER_STARTED)] == ["new", "restart"]
    exits = {r.reason for r in of_kind(records, Kind.PROCESS_ENDED) if learner_of(r.peer) == 0}
    assert exits == {"exit 0"}, "the learner that nobody killed lived through it"


def test_supervisor_records_every_start_and_end(struck: Struck) -> None:
    records = records_of(struck.path)
    starts = of_kind(records, Kind.PROCESS_STARTED)
    assert all(r.detail["pid"] > 0 and r.detail["host"] and r.detail["fingerprint"]["jaxlib"] for r in starts)
    assert sorted(r.value for r in starts if r.peer == SYNCER) == [1.0, 2.0]
    killed = [r.peer for r in of_kind(records, Kind.PROCESS_ENDED) if r.reason == "SIGKILL"]
    assert sorted(killed) == [SYNCER, 4, 5]
    faults = of_kind(records, Kind.FAULT_INJECTED)
    assert [(r.reason, r.detail["effect"]) for r in faults] == [
        ("kill", 1), ("kill", 1), ("stall", 1), ("kill_syncer", 1),
    ]  # fmt: skip


def test_evaluations_are_of_committed_versions(struck: Struck) -> None:
    found = of_kind(records_of(struck.path), Kind.EVALUATED)
    assert found[0].steps == 0
    assert all(sum(r.detail["versions"]) == r.steps for r in found)
    assert found[-1].value < found[0].value


def test_ledger_of_a_struck_run_balances(struck: Struck) -> None:
    tape = open_tape(struck.path)
    assert tape.attrs["closed"]
    assert is_balanced(summary(tape))


def test_machine_makes_its_decisions_again(struck: Struck) -> None:
    report = rerun_machines(struck.path)
    assert report.equal, report.first_difference
    assert report.lives == 2


def test_struck_run_replays_bit_for_bit(struck: Struck) -> None:
    report = replay(struck.path)
    assert report.bit_exact, report.first_difference
    assert report.merges == report.merges_compared == len(of_kind(records_of(struck.path), Kind.MERGED))


def test_killed_supervisor_leaves_a_whole_tape_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run = launch(tiny(), path)
    run.wait(rounds=5, timeout_s=GUARD_S)
    address = control.address_of(path)
    pids = run.status()["processes"]
    os.kill(address.pid, signal.SIGKILL)
    began = time.monotonic()
    until(lambda: not any(lives(pid) for pid in pids), "all processes are gone", 10 * GONE_WITHIN_S)
    took = time.monotonic() - began
    run.stop()
    assert took < 2 * GONE_WITHIN_S
    assert not Path(address.runtime).exists()
    records = records_of(path)
    assert records[-1].kind == Kind.RUN_ENDED
    tape = open_tape(path)
    assert tape.attrs["closed"]
    assert tape["events"].sizes["event"] == len(records)
    report = replay(path)
    assert report.bit_exact, report.first_difference
    assert report.merges_compared >= 5


SCRIPT = """
import sys, time
import workbench as wb
from tests.engine.real_runs import tiny

run = wb.launch(tiny(learners=2), sys.argv[1])
run.wait(rounds=3, timeout_s=120)
print(*run.status()["processes"], flush=True)
time.sleep(600)
"""


def test_a_run_whose_nursery_is_killed_is_lost_with_its_tape_closed_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = launch(tiny(2), tmp_path / "run")
    run.wait(rounds=5, timeout_s=GUARD_S)
    pids = run.status()["processes"]
    nursery = psutil.Process(pids[0]).ppid()
    os.kill(nursery, signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(RunEnded, match="the process that starts the others is gone") as ended:
        run.wait(timeout_s=GUARD_S)
    print(f"ended {time.monotonic() - began:.2f} s after its nursery")
    assert ended.value.code == 3
    assert not any(lives(pid) for pid in (*pids, nursery))
    assert open_tape(run.path).attrs["closed"]
    assert main(["inspect", str(run.path)]) == 0
    assert "ended with exit code 3: the process that starts the others is gone" in capsys.readouterr().out
    assert replay(run.path).bit_exact


def test_run_ends_with_the_script_that_launched_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    path = tmp_path / "run"
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    with subprocess.Popen(
        [sys.executable, str(script), str(path)], stdout=subprocess.PIPE, env=environment, cwd=root
    ) as owner:
        assert owner.stdout is not None
        pids = [int(word) for word in owner.stdout.readline().split()]
        runtime = control.address_of(path).runtime
        owner.kill()
        owner.wait(10.0)
    assert len(pids) >= 4
    until(lambda: not any(lives(pid) for pid in pids), "all processes are gone", 10 * GONE_WITHIN_S)
    until(lambda: not Path(runtime).exists(), "the runtime folder is gone", 10 * GONE_WITHIN_S)
    until(lambda: (path / "outcome.json").exists(), "the supervisor has left its word")
    assert open_tape(path).attrs["closed"]
    assert of_kind(records_of(path), Kind.RUN_ENDED)[0].reason == "owner_gone"


def test_second_supervisor_of_a_run_is_refused_with_the_first_ones_pid(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with launch(tiny(learners=1), path) as run:
        run.wait(rounds=1, timeout_s=GUARD_S)
        pid = control.address_of(path).pid
        second = subprocess.run(
            [sys.executable, "-m", "workbench.engine.supervisor", str(path)],
            capture_output=True, text=True, timeout=GUARD_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert second.returncode == 2
        assert str(pid) in second.stderr
        assert run.status()["phase"] == "running"


def test_request_that_cannot_work_is_one_line(tmp_path: Path) -> None:
    text = tmp_path / "short.txt"
    text.write_text("too short")
    config = tiny(learners=1).set({"data.source": "path", "data.path": str(text)})
    run = launch(config, tmp_path / "run")
    with pytest.raises(RunEnded) as ended:
        run.wait(timeout_s=GUARD_S)
    assert ended.value.code == 2
    assert str(ended.value).count("\n") == 0
    assert str(text) in str(ended.value) or "bytes" in str(ended.value)


def test_run_to_its_end_reports_done(tmp_path: Path) -> None:
    config = tiny(learners=2, rounds=9)
    run = launch(config, tmp_path / "run")
    assert run.wait(timeout_s=GUARD_S) == 0
    found: dict[str, Any] = summary(run.tape)
    assert found["merges"] == 9
    assert fragmentation_of(config).fragments == 3


@pytest.mark.slow
def test_learner_that_never_steps_is_given_up_and_can_be_revived(tmp_path: Path) -> None:
    path = tmp_path / "run"

    def one() -> dict[str, Any]:
        found: dict[str, Any] = run.status()["learners"][1]
        return found

    def killed_again() -> bool:
        now = one()
        if now["state"] in ("starting", "running") and now["pid"] and now["pid"] not in killed:
            killed.append(now["pid"])
            os.kill(now["pid"], signal.SIGKILL)
        return bool(now["state"] == "failed")

    killed: list[int] = []
    with launch(tiny(learners=2), path) as run:
        run.wait(rounds=3, timeout_s=GUARD_S)
        until(lambda: one()["state"] == "running", "the learner has stepped")
        until(killed_again, "the learner is given up")
        assert len(killed) == 6, "one that had stepped, five that had not"
        merged(run, 3)
        run.revive(1)
        until(lambda: one()["state"] == "running" and one()["number"] == 7, "it steps again")
        until(killed_again, "the learner is given up once more")
    assert run.outcome() == (1, "L1 failed 5 times in a row without one step")
