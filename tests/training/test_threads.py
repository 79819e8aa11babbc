"""Threads of a device are chosen before its first use, recorded, adopted by a replay, and never silently others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from workbench.config import ConfigError
from workbench.training.threads import VARIABLE, device_used, use_threads

REPOSITORY = Path(__file__).parents[2]
SMALL = (
    "learners=2", "rounds=6", "period=6", "fragments=3", "eval_every=0", "model.layers=1", "model.width=16",
    "model.heads=2", "model.kv_heads=1", "model.mlp=32", "model.context=16", "inner.batch=2",
)  # fmt: skip


def test_a_used_device_keeps_its_threads() -> None:
    jax.devices()
    assert device_used()
    here = os.environ[VARIABLE]
    use_threads(None)
    use_threads(int(here))
    with pytest.raises(ConfigError, match=f"machine.threads = 7 comes too late: .* {VARIABLE} {here}; allowed: a new"):
        use_threads(7)
    assert os.environ[VARIABLE] == here


def command(*words: str, code: str = "from workbench.cli.main import main; raise SystemExit(main())") -> str:
    """What another process of the package, in which no number of threads is given, prints."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment["PYTHONPATH"] = str(REPOSITORY)
    done = subprocess.run([sys.executable, "-c", code, *words], env=environment, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


AFTER_USE = "import sys, jax; jax.devices(); import workbench as wb; print(wb.replay(sys.argv[1]).verdict)"


def test_a_replay_takes_the_threads_of_the_run_or_names_that_it_could_not(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    sets = [word for key in (*SMALL, "machine.threads=3") for word in ("--set", key)]
    text = tmp_path / "text"
    text.write_bytes(bytes(range(256)) * 50)
    command("train", *sets, "--clock", "virtual", "--data", str(text), "--out", out, "--json")
    fresh = json.loads(command("replay", out, "--json"))
    assert (fresh["bit_exact"], fresh["environment"]) == (True, [])
    assert "environment differs: threads: nproc 3 there, none here" in command(out, code=AFTER_USE)
