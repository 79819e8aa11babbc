"""A real run through the public command, learners and syncer killed on the way, inspected and replayed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROUNDS = 60

SETTINGS = {
    "learners": 4,
    "rounds": ROUNDS,
    "period": 6,
    "fragments": 6,
    "quorum": 2,
    "eval_every": 20,
    "eval_batches": 4,
    "model.layers": 1,
    "model.width": 32,
    "model.heads": 2,
    "model.kv_heads": 1,
    "model.mlp": 64,
    "model.context": 32,
    "inner.batch": 4,
    "inner.warmup": 5,
}

SCENARIO = """
[[fault]]
kind = "kill"
learner = 1
at_s = 1.5
down_s = 1.0

[[fault]]
kind = "kill_syncer"
at_s = 3.0
for_s = 0.4

[[fault]]
kind = "kill"
learner = 3
at_s = 4.0
down_s = 1.5

[[fault]]
kind = "nan"
learner = 0
at_s = 2.0
"""


def workbench(*words: str | Path, code: int = 0) -> Any:
    """Run the command, check its exit code, return the JSON that it prints."""
    command = [sys.executable, "-m", "workbench", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=Path(__file__).parents[1])
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("real")
    (folder / "faults.toml").write_text(SCENARIO)
    sets = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    faults = ("--faults", folder / "faults.toml")
    return workbench("train", "--clock", "virtual", *sets, *faults, "--out", folder / "run")  # type: ignore[no-any-return]


def test_the_run_survives_its_kills_and_learns(trained: dict[str, Any]) -> None:
    assert trained["merges"] >= ROUNDS
    assert trained["tokens_lost"] > 0
    assert trained["val_loss_last"] < trained["val_loss_first"] - 0.5


def test_the_tape_tells_what_happened(trained: dict[str, Any]) -> None:
    overview = workbench("inspect", trained["tape"])
    assert str(trained["merges"]) in json.dumps(overview)


def test_the_replay_is_bit_exact(trained: dict[str, Any]) -> None:
    report = workbench("replay", trained["tape"])
    assert report["bit_exact"] is True, report["first_difference"]
    assert report["merges_compared"] == report["merges"] == trained["merges"]
    assert report["final_digest"] == trained["digest"]
    assert report["environment"] == []
