from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.real_runs import tiny
from workbench.cli.main import main
from workbench.config import to_toml
from workbench.engine import yardsticks


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(yardsticks, "PARAMETERS", 1 << 18)
    (tmp_path / "tiny.toml").write_text(to_toml(tiny(learners=2)))
    return ["bench", "--config", str(tmp_path / "tiny.toml"), "--seconds", "0.2"]


def test_bench_measures_one_learner_and_all_at_once(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], told: Callable[..., dict[str, Any]]
) -> None:
    found = told(*words, "--out", str(tmp_path / "figures.json"))
    assert [one["learners"] for one in found["reference"]] == [1, 2]
    assert json.loads((tmp_path / "figures.json").read_text()) == found
    for one in found["reference"]:
        assert one["tokens_per_s"] > 0 and one["tokens_per_s_all"] >= one["tokens_per_s"]
        assert 0 < one["step_s"] <= one["step_p95_s"]
        assert one["peak_bytes"] > 50 << 20
    assert found["tokens_a_step"] == 32
    for name in ("merge", "wire"):
        assert found[name]["ratio"] == pytest.approx(found[name]["bytes_per_s"] / found[name]["copy_bytes_per_s"])


def test_bench_prints_units_and_what_the_figures_are_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = {
        "learners": 1, "tokens_per_s": 26_687.0, "tokens_per_s_all": 26_687.0, "step_s": 0.0188, "step_p95_s": 0.024,
        "peak_bytes": 275 << 20,
    }  # fmt: skip
    speed = {"bytes_per_s": 9.4e9, "copy_bytes_per_s": 1e10, "seconds": 0.1, "ratio": 0.94}
    found = {
        "preset": "tiny-4", "parameters": 434_816, "tokens_a_step": 512, "learners": 4, "cores": 2, "load_before": 3.0,
        "threads": None, "merge_rule": "rda", "outer": "nesterov", "merge": speed, "wire": speed,
        "reference": [rates, rates | {"learners": 4}],
    }  # fmt: skip
    monkeypatch.setattr("workbench.cli.bench.measure", lambda config, seconds: found)
    assert main(["bench", "--preset", "tiny-4"]) == 0
    text = capsys.readouterr().out
    for part in ("26,687", "18.8 ms", "275 MiB", "9.40 GB/s", "0.94", "4 learners", "throughput ratio", "load 3.0"):
        assert part in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "1e9"])
def test_seconds_that_cannot_be_are_refused(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--seconds", seconds]) == 2
    assert "--seconds" in capsys.readouterr().err


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "old.json").write_text("old")
    assert main(["bench", "--out", str(tmp_path / "old.json")]) == 2
    assert "exists; allowed: a new file" in capsys.readouterr().err


def test_a_configuration_that_cannot_work_is_one_line(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "short.txt").write_text("too short")
    assert main([*words, "--data", str(tmp_path / "short.txt")]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("workbench: ")
