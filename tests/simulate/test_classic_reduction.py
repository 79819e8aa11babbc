"""With H = P = 1, no overlap and no lead the machines are data parallel: M learners equal one on the joint batch."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import jax
import numpy as np
import pytest

from tests.simulate.worlds import config_of, contributors, finished, of_kind, world_of
from workbench import analysis
from workbench.analysis.from_records import tables
from workbench.config import DataConfig, InnerConfig, ModelConfig, RunConfig
from workbench.datasets import batch, open_text
from workbench.models.functional import loss_function
from workbench.protocol.records import Kind, process_of
from workbench.simulate.numbers import Numbers
from workbench.simulate.world import World
from workbench.training import TrainingProgram, initial_weights
from workbench.training.flat import all_tensors, flatten, fragmentation_of

ROUNDS = 10
TOLERANCE = 2e-6
RATE = 0.5
MODEL = ModelConfig(layers=1, width=16, heads=2, kv_heads=1, mlp=32, context=16)
INNER = InnerConfig(optimizer="sgd", rate=RATE, schedule="constant", warmup=0, decay=0.0, clip=0.0, batch=2)
LOCK_STEP: dict[str, Any] = {"period": 1, "fragments": 1, "overlap": 0, "lead": 0}
CLASSIC: dict[str, Any] = {
    **LOCK_STEP,
    "merge": "mean",
    "weights": "uniform",
    "outer": "sgd",
    "outer_rate": 1.0,
    "outer_momentum": 0.0,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataConfig:
    path = tmp_path_factory.mktemp("text") / "bytes.bin"
    path.write_bytes(np.random.default_rng(0).choice([32, 97, 101, 116], 20_000).astype(np.uint8).tobytes())
    return DataConfig(source="path", path=str(path))


@cache
def gradient() -> Any:
    """Gradient of the model's loss on one batch."""
    return jax.jit(jax.grad(loss_function(MODEL)))


def joint_batches(config: RunConfig, learners: list[int], rounds: int) -> np.ndarray:
    """All weights after plain gradient descent, each step on the batches of these learners together."""
    text, fragmentation = open_text(config.data), fragmentation_of(config)
    parameters = all_tensors(initial_weights(config), fragmentation)
    for n in range(1, rounds + 1):
        slopes = [gradient()(parameters, batch(text, config.seed, m, n, INNER.batch, MODEL.context)) for m in learners]
        parameters = jax.tree.map(lambda value, *each: value - RATE * sum(each) / len(each), parameters, *slopes)
    return flatten(parameters, fragmentation.layout(0))


def trained(config: RunConfig) -> tuple[World, np.ndarray]:
    """A run with real arithmetic, and its committed weights."""
    numbers = Numbers(config, TrainingProgram(config, open_text(config.data)))
    return finished(world_of(config, arithmetic=numbers)), numbers.current[0]


@pytest.mark.parametrize("learners", [2, 4])
def test_many_learners_equal_one_on_the_joint_batch(learners: int, data: DataConfig) -> None:
    config = config_of(
        learners=learners, quorum=learners, rounds=ROUNDS, model=MODEL, inner=INNER, data=data, **CLASSIC
    )
    world, weights = trained(config)
    assert contributors(world) == [list(range(learners))] * ROUNDS
    expected = joint_batches(config, list(range(learners)), ROUNDS)
    assert np.abs(weights - expected).max() < TOLERANCE
    assert np.abs(weights - joint_batches(config, [0], ROUNDS)).max() > 1000 * TOLERANCE
    assert np.abs(weights - initial_weights(config)[0]).max() > 1000 * TOLERANCE


def test_each_learner_steps_once_between_two_merges_with_what_the_last_one_made() -> None:
    world = finished(world_of(config_of(learners=4, quorum=4, rounds=ROUNDS, **CLASSIC)))
    for merge in of_kind(world, Kind.MERGED):
        assert merge.detail["c_steps"] == [1] * 4
        assert merge.detail["steps_captured"] == [merge.round] * 4
        assert merge.detail["base_versions"] == [merge.version - 1] * 4
    merged = of_kind(world, Kind.MERGED)
    begins = [r.detail["start_ns"] for r in of_kind(world, Kind.STEP_ENDED) if r.step > 1]
    assert min(begins) > merged[0].time_ns
    for before, after in pairwise(merged):
        assert sum(before.time_ns < begin < after.time_ns for begin in begins) == 4


EVERYBODY = [0, 1, 2, 3]


@pytest.mark.parametrize("keys", [{"quorum": 1, "grace": "all"}, {"quorum": 4}, {"quorum": 4, "lead": 0}], ids=str)
@pytest.mark.parametrize(("fragments", "overlap"), [(1, 0), (6, 2)])
def test_equal_speeds_put_everybody_into_every_merge(keys: dict[str, Any], fragments: int, overlap: int) -> None:
    config = config_of(
        {"step_model": "fixed"}, learners=4, rounds=40, period=6, fragments=fragments, overlap=overlap, **keys
    )
    world = finished(world_of(config))
    assert float(analysis.participation(tables(world.records))["participation"]) == 1.0
    # rounds that are due before all are healed are not for all; a quorum of all waits for that
    phase_in = sum(offset < 3 for offset in world.fixed.offsets[1:]) if keys["quorum"] == 1 else 0
    assert contributors(world)[phase_in:] == [EVERYBODY] * (40 - phase_in)


def test_grace_for_all_waits_only_for_learners_that_are_known_to_have_work() -> None:
    """With H = 1 the first to report is the only clean one: only a quorum of all is a barrier."""
    config = config_of({"step_model": "fixed"}, learners=4, rounds=40, grace="all", **LOCK_STEP)
    alone = finished(world_of(config.set(quorum=1)))
    assert contributors(alone) == [[0]] * 40
    assert {(r.peer, r.reason) for r in of_kind(alone, Kind.LEARNER_STARVED)} == {
        (process_of(m), "base_behind") for m in (1, 2, 3)
    }
    assert contributors(finished(world_of(config.set(quorum=4)))) == [EVERYBODY] * 40
