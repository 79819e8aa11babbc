"""Threads and cores of the processes of a run, as asked for, as recorded, and as the operating system sees them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.engine.real_runs import GUARD_S, of_kind, records_of, tiny
from workbench.config import ConfigError
from workbench.engine.launch import launch
from workbench.engine.placing import environment_of, place_of, threads_of
from workbench.protocol.records import Kind, process_of
from workbench.replay.exact import replay


def test_learners_share_the_cores_unless_something_else_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert [threads_of(tiny(learners)) for learners in (1, 2, 3, 8, 9)] == [None, 4, 2, 1, 1]
    assert threads_of(tiny(2).set({"machine.threads": 8})) == 8
    assert threads_of(tiny(2).set({"machine.cores": "0-3 4-7"})) is None
    assert environment_of(tiny(4), "learner") == {"PJRT_NPROC": "2"} == environment_of(tiny(4), "prepare")
    assert environment_of(tiny(4), "syncer") == {}
    assert [place_of(tiny(4).set({"machine.cores": "spread"}), m) for m in (-1, 0, 3)] == [(), (0, 1), (6, 7)]
    monkeypatch.setenv("PJRT_NPROC", "5")
    assert threads_of(tiny(4)) is None


def test_cores_that_are_not_there_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    config = tiny(2).set({"machine.cores": "0 60000"})
    with pytest.raises(ConfigError, match="core 60000 cannot be used here; allowed: "):
        launch(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def threads_named(pid: int, name: str) -> int:
    """Threads of a process that have this in their name."""
    found = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += name in (task / "comm").read_text()
    return found


def test_processes_have_the_threads_and_cores_that_they_were_given(tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))
    config = tiny(2).set({"machine.threads": 3, "machine.cores": "spread"})
    with launch(config, tmp_path / "run") as run:
        run.wait(rounds=5, timeout_s=GUARD_S)
        pids = [one["pid"] for one in run.status()["learners"]]
        seen = [(sorted(os.sched_getaffinity(pid)), threads_named(pid, "XLAEigen")) for pid in pids]
        run.stop()
    expected = [list(place_of(config, m)) for m in range(2)]
    assert seen == [(place, 3) for place in expected]
    assert sorted({core for place in expected for core in place}) == cores
    starts = {r.peer: r.detail["fingerprint"] for r in of_kind(records_of(run.path), Kind.PROCESS_STARTED)}
    for m in range(2):
        there = starts[process_of(m)]
        assert (there["nproc"], there["visible_cores"]) == ("3", str(len(expected[m])))
    report = replay(run.path)
    named = f"threads: nproc 3 there, {os.environ['PJRT_NPROC']} here"
    assert (
        named in report.environment and report.verdict.startswith("environment differs: ") and named in report.verdict
    )
