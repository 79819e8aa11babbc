"""The grid's runs: configurations that fit the question, and one of each kind made small."""

from __future__ import annotations

import math

import pytest

from tests.benchmarks.cases import CASES, STEPS, Case, chosen, config_of, run

SMALL = {"model.layers": 1, "model.width": 16, "model.heads": 2, "model.kv_heads": 1, "model.mlp": 32}


def case_of(mode: str, label: str) -> Case:
    """The case with this label."""
    (found,) = chosen(mode, label)
    return found


def test_labels_are_unique_and_all_modes_hold_every_case() -> None:
    assert len({(case.mode, case.label) for case in CASES}) == len(CASES)
    assert list(chosen("all")) == list(CASES)
    assert [case.label for case in chosen("decoupled")] == ["H 12", "H 24", "H 8"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.mode} {case.label}")
def test_a_run_takes_as_many_steps_as_asked_for_to_the_nearest_round(case: Case) -> None:
    config = config_of(case, STEPS, 0)
    steps = config.rounds * config.period / config.fragments
    assert abs(steps - STEPS) <= config.period / config.fragments / 2
    assert config.inner.horizon == STEPS


def test_joint_batch_is_that_of_all_learners_together() -> None:
    joint, apart = config_of(case_of("joint", "batch 32"), STEPS, 0), config_of(case_of("decoupled", "H 12"), STEPS, 0)
    assert joint.inner.batch == apart.learners * apart.inner.batch


@pytest.mark.parametrize(("mode", "label"), [("joint", "batch 32"), ("decoupled", "H 8"), ("synchronous", "H 24")])
def test_a_small_run_of_each_kind_learns(mode: str, label: str) -> None:
    case = case_of(mode, label)
    done = run(case._replace(changes={**case.changes, **SMALL}), 48, 0)
    assert done["val_loss"] < math.log(256)
    assert abs(done["val_loss_wide"] - done["val_loss"]) < 0.3
    if mode == "synchronous":
        assert (done["merges"], done["mean_contributors"], done["mean_c_steps"]) == (2, 4.0, 24.0)
    if mode == "decoupled":
        assert done["merges"] == 48
        assert 3.5 < done["mean_contributors"] <= 4
