"""What may be asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.replay.counterfactual.conftest import Told
from workbench.config import ConfigError, RunConfig
from workbench.protocol.faults import Fault
from workbench.replay.counterfactual.changes import changes_of

REFUSED: dict[str, Any] = {
    "model.width": 32, "data.holdout_every": 10, "seed": 1, "inner.batch": 4, "inner.optimizer": "sgd", "fragments": 2,
    "fragmentation": "layer", "period": 8, "overlap": 1, "virtual.step_s": 0.2, "eval_every": 3, "learners": 8,
    "no_such_key": 1, "quorum": 9, "merge": "median",
}  # fmt: skip


@pytest.mark.parametrize("key", REFUSED)
def test_what_no_tape_can_answer_for_is_refused_in_one_line(key: str, quiet: Told, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        wb.what_if(quiet.tape, {key: REFUSED[key]}, out=tmp_path / "child")
    assert "\n" not in str(refused.value)
    assert key in str(refused.value)
    assert not (tmp_path / "child").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"without": ["stall"]}, "no fault of the tape is called so"),
        ({"without": [7]}, "the tape has none"),
        ({"seeds": 0}, "seeds = 0"),
        ({"from_round": 3, "anchor": "base"}, "cannot change anchor from a round on"),
        ({"from_round": 0, "quorum": 1}, "from_round = 0; allowed: 1 to"),
        ({"from_round": 10**6, "quorum": 1}, "allowed: 1 to .*, the last round that the tape opens"),
        ({"from_round": 3}, "without a setting that changes"),
        ({"from_round": 3, "quorum": 2}, "without a setting that changes"),
        ({"from_round": 3, "quorum": 1, "resimulate": True}, "leave one of the two out"),
        ({"from_round": 3, "quorum": 1, "added": [Fault("kill", 0)]}, "faults have times of their own"),
        ({"moved": {1: 1.0}}, "there is no fault 1; the tape has none"),
    ],
)
def test_other_impossible_questions_are_refused_too(
    arguments: dict[str, Any], told: str, quiet: Told, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=told):
        wb.what_if(quiet.tape, out=tmp_path / "child", **arguments)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0, 1e30, 1e4])
def test_a_fault_cannot_be_moved_to_where_nothing_strikes(seconds: float, killed: Told, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="seconds from the start of rounds to the end of the tape") as refused:
        wb.what_if(killed.tape, moved={1: seconds}, out=tmp_path / "child")
    assert "\n" not in str(refused.value)


def test_a_fault_is_not_removed_and_moved(killed: Told, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="leave one of the two out"):
        wb.what_if(killed.tape, without=["kill"], moved={1: 1.0}, out=tmp_path / "child")


def test_a_folder_that_holds_something_is_refused_before_anything_is_computed(quiet: Told) -> None:
    with pytest.raises(ConfigError, match="already holds a run; give a new folder"):
        wb.what_if(quiet.path, merge="mean", out=quiet.path)


def test_classes() -> None:
    config = RunConfig()
    kinds = {key: changes_of(config, {key: value}) for key, value in (
        ("merge", "mean"), ("outer_rate", 0.1), ("quorum", 2), ("lead", 3), ("codec", "bf16"), ("rounds", 100),
    )}  # fmt: skip
    assert {key: made.kind for key, made in kinds.items()} == {
        "merge": "arithmetic", "outer_rate": "arithmetic", "quorum": "schedule", "lead": "schedule",
        "codec": "schedule", "rounds": "schedule",
    }  # fmt: skip
    assert [key for key, made in kinds.items() if made.from_start] == ["lead"]
    assert kinds["codec"].bytes_ratio == 0.5
    assert changes_of(config, {"merge": "mean", "quorum": 2}).kind == "schedule"
    assert changes_of(config, {"merge": config.merge}).values == {}
    assert kinds["rounds"].config.inner.horizon == 200, "the learning rates of the tape"
