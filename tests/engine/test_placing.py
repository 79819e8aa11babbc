"""Threads and cores of the processes of a run, as asked for, as recorded, and as the operating system sees them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.engine.real_runs import GUARD_S, of_kind, records_of, tiny
from workbench.config import ConfigError
from workbench.engine.launch import launch
from workbench.engine.placing import beside_steps, check_cores, environment_of, place_of, threads_of
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


def test_apart_leaves_cores_to_all_that_is_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    one = tiny(1).set({"machine.cores": "apart"})
    assert (threads_of(one), place_of(one, 0), place_of(one, -1), beside_steps(one)) == (7, tuple(range(7)), (7,), (7,))
    three = tiny(3).set({"machine.cores": "apart"})
    assert (threads_of(three), [place_of(three, m) for m in (0, 2, 3, -1)]) == (2, [(0, 1), (4, 5), (0, 1), (6, 7)])
    assert beside_steps(tiny(3)) == ()
    with pytest.raises(ConfigError, match="8 learners of 1 threads leave none of 8 cores to all else; set machine"):
        check_cores(tiny(8).set({"machine.cores": "apart"}))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core cannot be kept apart")
def test_steps_have_cores_that_nothing_else_uses(tmp_path: Path) -> None:
    config = tiny(1).set({"machine.threads": 1, "machine.cores": "apart"})
    with launch(config, tmp_path / "run") as run:
        run.wait(rounds=5, timeout_s=GUARD_S)
        status = run.status()
        learner = status["learners"][0]["pid"]
        seen = {pid: cores_by_thread(pid) for pid in status["processes"]}
        run.stop()
    step, beside = set(place_of(config, 0)), set(beside_steps(config))
    assert step.isdisjoint(beside)
    for pid, threads in seen.items():
        for name, tid, cores in threads:
            steps = pid == learner and tid != pid and not name.startswith("ZMQ")
            assert cores == (step if steps else beside), (pid == learner, name, tid == pid)
    assert any(name.startswith("tf_XLA") for name, _, _ in seen[learner])
    assert replay(run.path).bit_exact


def cores_by_thread(pid: int) -> list[tuple[str, int, set[int]]]:
    """Name, number and cores of each thread of a process."""
    tasks = sorted(Path(f"/proc/{pid}/task").iterdir())
    return [
        ((task / "comm").read_text().strip(), int(task.name), os.sched_getaffinity(int(task.name))) for task in tasks
    ]
