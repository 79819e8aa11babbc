"""The demo, as a test: real processes through the public command, two learners killed; every digest made again.

The run is `make demo`'s: the same preset, the same scenario, the same bar.  It is the last of the default tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import bar

ROOT = Path(__file__).parents[1]
ROUNDS = 900
HANG_GUARD_S = 1500.0


def workbench(*words: str | Path) -> Any:
    """Run the command, which must end with exit code 0; return the JSON that it prints."""
    command = [sys.executable, "-m", "workbench", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_GUARD_S, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The summary of the demo's run."""
    words = ("--preset", "tiny-4", "--faults", "data/demo-faults.toml")
    found: dict[str, Any] = workbench("train", *words, "--out", tmp_path_factory.mktemp("demo") / "run")
    print({key: found[key] for key in ("wall_s", "val_loss_last", "goodput", "participation")})
    return found


@pytest.mark.timeout(2 * HANG_GUARD_S)
def test_the_run_learns_and_whoever_was_killed_is_merged_again(trained: dict[str, Any]) -> None:
    found = bar.look(Path(trained["tape"]))
    assert trained["merges"] == ROUNDS
    assert found.returned == {1: True, 3: True}
    assert found.met, found
    assert trained["val_loss_first"] > 5.5


@pytest.mark.timeout(2 * HANG_GUARD_S)
def test_the_ledger_balances_and_tells_what_the_kills_cost(trained: dict[str, Any]) -> None:
    assert workbench("inspect", trained["tape"], "ledger")["balanced"] is True
    assert trained["tokens_lost"] > 0
    assert trained["uptime"] > 0.99


@pytest.mark.timeout(2 * HANG_GUARD_S)
def test_no_process_and_no_folder_is_left(trained: dict[str, Any]) -> None:
    run = Path(trained["tape"])
    assert not (run / "control.json").exists()
    mine = [name for name in os.listdir("/proc") if name.isdigit() and str(run) in _command_line(name)]
    assert mine == []


def _command_line(pid: str) -> str:
    try:
        return Path("/proc", pid, "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


@pytest.mark.timeout(2 * HANG_GUARD_S)
def test_the_replay_is_bit_exact_and_the_machines_decide_as_recorded(trained: dict[str, Any]) -> None:
    report = workbench("replay", trained["tape"])
    assert report["bit_exact"] is True, report["first_difference"]
    assert report["merges_compared"] == report["merges"] == trained["merges"]
    assert report["final_digest"] == trained["digest"]
    assert report["environment"] == []
    assert report["machines_agree"] is True, report["machines_first_difference"]
