"""Inner optimisers and the schedule, against values worked out by hand."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from workbench.config import InnerConfig, RunConfig
from workbench.config.validate import CHOICES
from workbench.training.inner import INNER_OPTIMIZERS, horizon_of, inner_optimizer, rate_factor


@pytest.mark.parametrize(
    ("g", "expected"),
    [(0, 0.0), (1, 0.1), (5, 0.5), (10, 1.0), (60, 0.55), (110, 0.1), (10_000, 0.1), (35, 0.1 + 0.45 * (1 + 0.5**0.5))],
)
def test_cosine_with_warm_up(g: int, expected: float) -> None:
    inner = InnerConfig(warmup=10, final_fraction=0.1)
    assert rate_factor(inner, 110, g) == pytest.approx(expected)


def test_constant_schedule_has_no_warm_up() -> None:
    assert {rate_factor(InnerConfig(schedule="constant"), 100, g) for g in (0, 1, 50, 1000)} == {1.0}


def test_run_shorter_than_its_warm_up_never_leaves_it() -> None:
    assert rate_factor(InnerConfig(warmup=30), 20, 20) == pytest.approx(2 / 3)


def test_horizon_is_the_length_of_the_run_unless_set() -> None:
    assert horizon_of(RunConfig(rounds=900)) == 900
    assert horizon_of(RunConfig(rounds=100, period=24, fragments=12)) == 200
    assert horizon_of(RunConfig(inner=InnerConfig(horizon=77))) == 77


def test_every_configured_name_has_an_optimizer() -> None:
    assert set(INNER_OPTIMIZERS) == set(CHOICES["inner.optimizer"])


def test_sgd_gives_the_gradient_itself() -> None:
    gradients = {"a": jnp.array([3.0, -4.0]), "b": jnp.ones((2, 2))}
    parameters = {name: value * 7 for name, value in gradients.items()}
    transformation = inner_optimizer(InnerConfig(optimizer="sgd", clip=0.0))
    directions, _ = transformation.update(gradients, transformation.init(parameters), parameters)
    assert all(np.array_equal(directions[name], gradients[name]) for name in gradients)


@pytest.mark.parametrize(("length", "expected"), [(10.0, 1.0), (0.5, 0.5)])
def test_clip_bounds_the_global_norm(length: float, expected: float) -> None:
    gradients = {"a": jnp.array([0.6 * length]), "b": jnp.array([[0.8 * length]])}
    transformation = inner_optimizer(InnerConfig(optimizer="sgd", clip=1.0))
    directions, _ = transformation.update(gradients, transformation.init(gradients), gradients)
    assert float(jnp.hypot(directions["a"][0], directions["b"][0, 0])) == pytest.approx(expected, rel=1e-5)
    assert float(directions["a"][0] / directions["b"][0, 0]) == pytest.approx(0.75)


def test_adamw_decays_matrices_only_and_moves_by_the_sign_at_first() -> None:
    parameters = {"matrix": jnp.full((2, 2), 5.0), "scale": jnp.full((2,), 5.0)}
    gradients = {"matrix": jnp.full((2, 2), 0.3), "scale": jnp.full((2,), -0.2)}
    transformation = inner_optimizer(InnerConfig(decay=0.1, clip=0.0))
    directions, _ = transformation.update(gradients, transformation.init(parameters), parameters)
    np.testing.assert_allclose(directions["matrix"], 1.0 + 0.1 * 5.0, rtol=1e-5)
    np.testing.assert_allclose(directions["scale"], -1.0, rtol=1e-5)


def test_adamw_second_step_follows_the_published_recursion() -> None:
    inner = InnerConfig(decay=0.0, clip=0.0, beta1=0.9, beta2=0.95)
    transformation = inner_optimizer(inner)
    parameters = {"x": jnp.array([1.0])}
    state = transformation.init(parameters)
    for gradient in (0.5, -0.1):
        directions, state = transformation.update({"x": jnp.array([gradient])}, state, parameters)
    mean = (0.9 * 0.1 * 0.5 + 0.1 * -0.1) / (1 - 0.9**2)
    square = (0.95 * 0.05 * 0.25 + 0.05 * 0.01) / (1 - 0.95**2)
    assert float(directions["x"][0]) == pytest.approx(mean / (square**0.5 + 1e-8), rel=1e-5)
