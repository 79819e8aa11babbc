"""Stand-ins for the work behind the verbs, and one small real run that all tests share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from workbench.cli.main import main

SMALL = (
    "model.layers=1", "model.width=16", "model.heads=2", "model.kv_heads=1", "model.mlp=32", "model.context=16",
    "inner.batch=2", "period=6", "fragments=6", "eval_every=10", "eval_batches=1",
)  # fmt: skip
SCENARIO = """
fault = [
    { kind = "kill", learner = 1, at_s = 1.5, down_s = 1.0 },
    { kind = "stall", learner = 2, at_s = 3.0, for_s = 1.5 },
    { kind = "nan", learner = 0, at_s = 4.0 },
    { kind = "kill", learner = 1, at_s = 1.8, down_s = 1.0 },
    { kind = "kill_syncer", at_s = 6.0, for_s = 0.5 },
]
"""


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a module of the given names in the place of another."""

    def put(module: str, **names: Any) -> None:
        fake = ModuleType(module)
        vars(fake).update(names)
        monkeypatch.setitem(sys.modules, module, fake)

    return put


@pytest.fixture(scope="session")
def small_words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Flags of a run that takes seconds: a tiny model on a text in which the next byte follows from the last."""
    text = tmp_path_factory.mktemp("text") / "counting.bin"
    text.write_bytes(np.arange(20_000, dtype=np.int64).astype(np.uint8).tobytes())
    return ["--clock", "virtual", *(word for key in SMALL for word in ("--set", key)), "--data", str(text)]


@pytest.fixture(scope="session")
def small_run(small_words: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a real run of three learners with faults of several kinds."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "faults.toml").write_text(SCENARIO, encoding="utf-8")
    words = ["--set", "learners=3", "--set", "quorum=2", "--set", "rounds=60", "--faults", str(folder / "faults.toml")]
    assert main(["train", *small_words, *words, "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """Run a verb with --json and return what it printed; its exit code must be as expected."""

    def tell(*words: str, code: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        assert main([*words, "--json"]) == code
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return tell
