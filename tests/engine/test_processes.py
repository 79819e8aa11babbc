"""Starts and restarts: backoff, ends, timers, plans."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from workbench.config import ConfigError, RunConfig
from workbench.engine.child import signal_name
from workbench.engine.fleet import Fleet
from workbench.engine.layout import PLAN_FILE, Plan, read_plan, write_private
from workbench.engine.processes import BACKOFF_FIRST_S, BACKOFF_MAX_S, Managed
from workbench.engine.start_line import StartLine
from workbench.engine.timers import Timers, wait_ms
from workbench.engine.weights import load_initial, save_initial
from workbench.protocol.faults import Fault


def test_backoff_doubles_up_to_its_limit_and_begins_anew_after_a_step() -> None:
    learner = Managed("learner", "L0")
    waits = [learner.next_backoff_s() for _ in range(9)]
    assert waits[:4] == [0.5, 1.0, 2.0, 4.0] and waits[-1] == BACKOFF_MAX_S
    learner.state, learner.failed_starts = "starting", 4
    learner.got_somewhere()
    assert (learner.state, learner.failed_starts, learner.next_backoff_s()) == ("running", 0, BACKOFF_FIRST_S)


@pytest.mark.parametrize(
    ("states", "late", "goes"),
    [
        ({1: "starting"}, (), False),
        ({1: "starting"}, (1,), True),
        ({1: "ended", 2: "failed"}, (), True),
        ({1: "starting", 2: "starting"}, (2,), False),
        ({0: "starting"}, (0, 1, 2), True),
    ],
)
def test_the_first_learners_wait_for_each_other_but_for_none_that_is_late_or_over(
    states: dict[int, str], late: tuple[int, ...], goes: bool
) -> None:
    fleet = Fleet.__new__(Fleet)
    fleet.learners = [Managed("learner", f"L{m}", learner=m, number=1, ready=m not in states) for m in range(3)]
    for m, state in states.items():
        fleet.learners[m].state = state
    fleet.striker = SimpleNamespace(late=dict.fromkeys(late))  # type: ignore[assignment]
    fleet.config, fleet.timers = RunConfig(learners=3), Timers()
    line = StartLine(fleet)
    line.ready(fleet.learners[2])
    assert line.away == goes
    assert bool(fleet.timers.wait_s(99.0) < 99.0) == (not goes), "the start limit runs while somebody is waited for"


def status_of(process: subprocess.Popen[bytes]) -> int:
    """The status that the kernel gives for an ended process."""
    status = os.waitpid(process.pid, 0)[1]
    process.returncode = os.waitstatus_to_exitcode(status)
    return status


def test_how_a_process_ended_has_a_name() -> None:
    for code, name in ((0, "exit 0"), (3, "exit 3")):
        assert signal_name(status_of(subprocess.Popen(["sh", "-c", f"exit {code}"]))) == name
    process = subprocess.Popen(["sleep", "60"])
    process.kill()
    assert signal_name(status_of(process)) == "SIGKILL"


def test_timers_act_in_order_of_time() -> None:
    timers, done = Timers(), list[str]()
    timers.after(0.0, done.append, "now")
    timers.after(100.0, done.append, "later")
    timers.after(0.0, done.append, "then")
    assert timers.wait_s(5.0) == 0.0
    timers.run_due()
    assert done == ["now", "then"]
    assert 4.0 < timers.wait_s(5.0) <= 5.0
    assert Timers().wait_s(0.5) == 0.5


def test_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = Plan([Fault("kill", 0, 1, 10**9), Fault("loss", 5, 2, share=0.25, at_merge=7)], {"chaos": "mtbi=4"})
    write_private(tmp_path / PLAN_FILE, msgspec.json.encode(plan))
    assert read_plan(tmp_path) == plan


def test_time_to_the_first_of_several_moments() -> None:
    assert wait_ms(10, 250, -1, -1) == 250
    assert wait_ms(5_000_000, 250, 7_000_001, -1) == 3
    assert wait_ms(5_000_000, 250, 7_000_000, 4_000_000) == 0
    assert wait_ms(0, 250, 10**12) == 250


def test_plan_that_is_none_is_one_line(tmp_path: Path) -> None:
    assert read_plan(tmp_path) == Plan()
    (tmp_path / PLAN_FILE).write_text("[1")
    with pytest.raises(ConfigError, match="is no plan of faults"):
        read_plan(tmp_path)


def test_first_weights_are_read_back_and_those_of_another_model_refused(tmp_path: Path) -> None:
    weights = [np.arange(3, dtype=np.float32), np.ones(5, np.float32)]
    save_initial(tmp_path, weights)
    for found, made in zip(load_initial(tmp_path, (3, 5)), weights, strict=True):
        np.testing.assert_array_equal(found, made)
    for sizes in ((3, 6), (3,)):
        with pytest.raises(ConfigError, match="weights of another model"):
            load_initial(tmp_path, sizes)
