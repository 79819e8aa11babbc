"""The compiled step: plain descent, accumulation, clipping, sharing, and its bits."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from workbench.config import InnerConfig, RunConfig, to_toml
from workbench.datasets import Text
from workbench.models.functional import loss_function
from workbench.training import LearnerArithmetic, TrainingProgram, initial_weights
from workbench.training.flat import all_tensors
from workbench.training.step import compiled_step, fresh_state

REPOSITORY = Path(__file__).parents[2]


def test_sgd_step_is_parameters_minus_rate_times_gradient(config: RunConfig, program: TrainingProgram) -> None:
    inner = InnerConfig(optimizer="sgd", clip=0.0)
    parameters = all_tensors(initial_weights(config), program.fragmentation)
    batch = program.batch(0, 1)
    gradients = jax.jit(jax.grad(loss_function(config.model)))(parameters, batch)
    moved, _, _ = compiled_step(config.model, inner)(parameters, fresh_state(inner, parameters), batch, np.float32(0.5))
    for name, value in parameters.items():
        expected = np.asarray(value) - np.float32(0.5) * np.asarray(gradients[name])
        np.testing.assert_allclose(np.asarray(moved[name]), expected, rtol=1e-6, atol=1e-7)


def test_accumulated_step_equals_one_with_the_joint_batch(config: RunConfig, program: TrainingProgram) -> None:
    inner = InnerConfig(optimizer="sgd", clip=0.0)
    parameters = all_tensors(initial_weights(config), program.fragmentation)
    micro = np.stack([program.batch(0, n) for n in (1, 2, 3)])
    step, state = compiled_step(config.model, inner), fresh_state(inner, parameters)
    split, _, split_loss = step(parameters, state, micro, np.float32(1.0))
    joint, _, joint_loss = step(parameters, state, micro.reshape(6, -1), np.float32(1.0))
    assert float(split_loss) == pytest.approx(float(joint_loss), rel=1e-5)
    for name in parameters:
        np.testing.assert_allclose(np.asarray(split[name]), np.asarray(joint[name]), rtol=1e-4, atol=1e-5)


def test_programs_that_differ_in_schedule_and_rate_share_one_compiled_step(config: RunConfig) -> None:
    other = replace(config.inner, rate=1.0, warmup=99, schedule="constant", horizon=5, accumulation=4)
    assert compiled_step(config.model, other) is compiled_step(config.model, config.inner)
    assert compiled_step(config.model, replace(other, beta1=0.5)) is not compiled_step(config.model, other)


def test_the_same_step_gives_the_same_bits_again(arithmetic: LearnerArithmetic, config: RunConfig) -> None:
    def digests() -> list[int]:
        arithmetic.load(initial_weights(config))
        result = []
        for n in (1, 2, 3):
            arithmetic.step(n, n)
            result.append(arithmetic.digest())
        return result

    first = digests()
    assert len(set(first)) == 3
    assert digests() == first


SCRIPT = """
import sys
from workbench.config import from_toml
from workbench.datasets import open_text
from workbench.training import LearnerArithmetic, TrainingProgram, initial_weights
config = from_toml(sys.argv[1])
program = TrainingProgram(config, open_text(config.data))
learner = LearnerArithmetic(config, 0, program, program.fragmentation)
learner.load(initial_weights(config))
for n in (1, 2, 3):
    learner.step(n, n)
print(learner.digest())
"""


def test_a_fresh_process_gives_the_same_bits(arithmetic: LearnerArithmetic, config: RunConfig) -> None:
    for n in (1, 2, 3):
        arithmetic.step(n, n)
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", SCRIPT, to_toml(config)]
    output = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert output.returncode == 0, output.stderr
    assert int(output.stdout) == arithmetic.digest()


def test_loss_falls_on_text_whose_next_byte_follows(config: RunConfig, text: Text) -> None:
    quick = replace(config, inner=replace(config.inner, rate=2e-2, schedule="constant"))
    program = TrainingProgram(quick, text)
    learner = LearnerArithmetic(quick, 0, program, program.fragmentation)
    learner.load(initial_weights(quick))
    before = learner.evaluate()
    losses = [learner.step(n, n).loss for n in range(1, 201)]
    assert before == pytest.approx(np.log(256), abs=0.5)
    assert learner.evaluate() < 0.5 * before
    assert np.mean(losses[-10:]) < 0.5 * losses[0]


def test_warm_up_changes_nothing(arithmetic: LearnerArithmetic, program: TrainingProgram) -> None:
    before = arithmetic.digest()
    program.warm_up()
    assert arithmetic.digest() == before
