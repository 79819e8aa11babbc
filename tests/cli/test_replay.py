from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.cli.main import main


class Report:
    """What a replay returns, as the command line sees it."""

    merges = 12
    merges_compared = 12
    final_digest = 0xABC
    verdict = "as the replay judges"

    def __init__(self, first_difference: str | None) -> None:
        self.first_difference = first_difference
        self.bit_exact = first_difference is None

    def weights(self) -> dict[str, np.ndarray]:
        return {"head": np.arange(3, dtype=np.float32), "block0/norm": np.zeros(2, np.float32)}

    def to_json(self) -> dict[str, Any]:
        return {"bit_exact": self.bit_exact, "merges": self.merges, "first_difference": self.first_difference}


@pytest.fixture
def outcome(stand_in: Callable[..., None]) -> Callable[[str | None], None]:
    """Choose what the replay finds."""

    def choose(first_difference: str | None) -> None:
        def replay(run: Path, progress: Callable[[int, int], None]) -> Report:
            progress(12, 12)
            return Report(first_difference)

        stand_in("workbench.replay.exact", replay=replay)

    return choose


def test_a_bit_exact_replay_writes_the_weights_and_says_so(
    outcome: Callable[[str | None], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome(None)
    target = tmp_path / "weights"
    assert main(["replay", "run", "--out", str(target)]) == 0
    with np.load(target, allow_pickle=False) as stored:
        assert {name: stored[name].tolist() for name in stored} == {"head": [0, 1, 2], "block0/norm": [0, 0]}
    assert [path.name for path in tmp_path.iterdir()] == ["weights"]
    out = capsys.readouterr().out
    assert "0000000000000abc" in out
    assert "as the replay judges" in out
    assert "first difference" not in out


def test_a_difference_is_named_and_is_code_1(
    outcome: Callable[[str | None], None], capsys: pytest.CaptureFixture[str]
) -> None:
    outcome("merge 7 of fragment 3")
    assert main(["replay", "run"]) == 1
    assert "merge 7 of fragment 3" in capsys.readouterr().out


def test_json_is_the_report(outcome: Callable[[str | None], None], capsys: pytest.CaptureFixture[str]) -> None:
    outcome("merge 7")
    assert main(["replay", "run", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"bit_exact": False, "merges": 12, "first_difference": "merge 7"}


def test_a_folder_that_is_not_there_is_said_before_the_work(
    outcome: Callable[[str | None], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", "run", "--out", "/no/such/folder/w.npz"]) == 2
    assert "/no/such/folder" in capsys.readouterr().err
