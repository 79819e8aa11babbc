"""Ground that gives way: no room on the disk, a folder that cannot be written, an error, everything killed at once."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.engine.real_runs import GUARD_S, lives, of_kind, records_of, tiny, until
from workbench.engine import control
from workbench.engine.launch import RunEnded, launch
from workbench.engine.runtime_folder import RuntimeFolder
from workbench.protocol.records import Kind, learner_of
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.tape import open_tape

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux: another process's limits are changed")
def test_without_room_for_the_journal_rounds_pause_and_learners_train_on(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with launch(tiny(2), path) as run:
        run.wait(rounds=10, timeout_s=GUARD_S)
        syncer = run.status()["syncer"]["pid"]
        room = resource.prlimit(syncer, resource.RLIMIT_FSIZE)
        resource.prlimit(syncer, resource.RLIMIT_FSIZE, ((path / "journal").stat().st_size, room[1]))
        until(lambda: run.status()["phase"] == "storage_full", "the run says that there is no room")
        merges = run.status()["merges"]
        line = run.status()["storage_full"]
        assert "no room" in line and str(path) in line
        time.sleep(1.0)
        assert run.status()["merges"] == merges
        resource.prlimit(syncer, resource.RLIMIT_FSIZE, room)
        run.wait(rounds=merges + 10, timeout_s=GUARD_S)
        assert run.status()["phase"] == "running"
    records = records_of(path)
    assert {r.reason for r in of_kind(records, Kind.PROCESS_ENDED)} == {"exit 0"}
    for learner in (0, 1):
        steps = [r.step for r in of_kind(records, Kind.STEP_ENDED) if learner_of(r.process) == learner]
        assert steps == list(range(1, len(steps) + 1)), "steps made meanwhile are on the tape"
    assert replay(path).bit_exact
    assert rerun_machines(path).equal


@pytest.mark.parametrize("room", [15_000, 60_000], ids=["first weights", "committed fragments"])
def test_a_disk_that_is_full_from_the_start_is_one_line(
    room: int, tmp_path: Path, raising: Callable[..., None]
) -> None:
    """The tape cannot be laid either: that is not tried again and again."""
    raising("workbench.tape.recorder", "Recorder", "__init__", "True")
    path = tmp_path / "run"
    own = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, own[1]))
    try:
        run = launch(tiny(2), path)
        with pytest.raises(RunEnded, match=f"no room for {path}: the disk is full") as ended:
            run.wait(timeout_s=GUARD_S)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, own)
    assert ended.value.code == 3
    log = path / "logs" / "recorder.log"
    assert not log.exists() or log.read_text().count("Traceback") <= 2


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    out = locked / "run" if os.geteuid() else Path("/sys/kernel/run")  # where the superuser may not write either
    done = subprocess.run(
        [sys.executable, "-m", "workbench", "train", "--set", "rounds=5", "--out", str(out)],
        capture_output=True, text=True, timeout=GUARD_S, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and str(out) in done.stderr and "--out" in done.stderr


def test_a_run_whose_folder_is_taken_away_ends(tmp_path: Path) -> None:
    with launch(tiny(2), tmp_path / "run") as run:
        run.wait(rounds=10, timeout_s=GUARD_S)
        pids = [*run.status()["processes"], control.address_of(run.path).pid]
        shutil.rmtree(run.path)
        began = time.monotonic()
        until(lambda: not run.running and not any(lives(pid) for pid in pids), "nothing of it is left")
    print(f"nothing was left {time.monotonic() - began:.1f} s after the folder")


def test_everything_killed_at_once_leaves_a_tape_and_the_next_start_sweeps(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run = launch(tiny(2), path)
    run.wait(rounds=10, timeout_s=GUARD_S)
    address = control.address_of(path)
    pids = [address.pid, *run.status()["processes"]]
    for pid in pids:
        with suppress(ProcessLookupError):  # who lost its parent a moment before is gone already
            os.kill(pid, signal.SIGKILL)
    until(lambda: not any(lives(pid) for pid in pids), "all processes are gone")
    until(lambda: not run.running, "the supervisor is reaped")
    with pytest.raises(RunEnded, match="gone without a word"):
        run.wait(timeout_s=GUARD_S)
    RuntimeFolder.sweep()
    assert not Path(address.runtime).exists()
    tape = open_tape(path)
    assert tape["events"].sizes["event"] == len(records_of(path))
    report = replay(path)
    assert report.bit_exact, report.first_difference
    assert report.merges_compared >= 10


PATCH = """
import builtins
import sys

_import = builtins.__import__


def _watching(*arguments, **named):
    module = _import(*arguments, **named)
    target = sys.modules.get({module!r})
    owner = getattr(target, {owner!r}, None)
    if owner is not None and not hasattr(owner, "before_the_test"):
        owner.before_the_test = getattr(owner, {method!r})

        def method(self, *arguments, **named):
            if {condition}:
                raise RuntimeError("this cannot be done, says the test")
            return owner.before_the_test(self, *arguments, **named)

        setattr(owner, {method!r}, method)
    return module


builtins.__import__ = _watching
"""
"""A sitecustomize with which a method raises in the processes of a run, whoever starts them."""


@pytest.fixture
def raising(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let a method raise in all processes that start from now on."""

    def patch(module: str, owner: str, method: str, condition: str) -> None:
        text = PATCH.format(module=module, owner=owner, method=method, condition=condition)
        (tmp_path / "sitecustomize.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))

    return patch


def test_a_learner_that_raises_is_shown_and_the_others_go_on(tmp_path: Path, raising: Callable[..., None]) -> None:
    third = "self.learner == 1 and arguments[0] == 3"
    raising("workbench.training.learner_arithmetic", "LearnerArithmetic", "step", third)
    path = tmp_path / "run"
    with launch(tiny(2), path) as run:
        until(lambda: "cannot be done" in run.status()["learners"][1]["line"], "the error is shown")
        run.wait(rounds=run.status()["merges"] + 20, timeout_s=GUARD_S)
    log = (path / "logs" / "L1.log").read_text()
    assert "Traceback" in log and "RuntimeError: this cannot be done, says the test" in log
    assert open_tape(path).attrs["closed"]


def test_a_syncer_that_comes_up_and_dies_each_time_loses_the_run(tmp_path: Path, raising: Callable[..., None]) -> None:
    raising("workbench.engine.syncer_status", "StatusBook", "status", "True")
    run = launch(tiny(2), tmp_path / "run")
    with pytest.raises(RunEnded, match="the syncer failed 5 times in a row") as ended:
        run.wait(timeout_s=GUARD_S)
    assert ended.value.code == 3
