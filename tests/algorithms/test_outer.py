from typing import Any

import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algorithms import oracle
from workbench.algorithms.outer import OUTER_OPTIMIZERS
from workbench.algorithms.slots import Key, OuterConfig, OuterGradient, OuterInputs
from workbench.config.validate import CHOICES

RULES = sorted(OUTER_OPTIMIZERS)


def step(
    rule: str, theta: Any, delta: Any, state: Any, eta: float, mu: float, steps: int = 0, factor: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    member, config = OUTER_OPTIMIZERS[rule], OuterConfig(eta, mu)
    theta = np.asarray(theta, np.float32)
    state = member.init(config, theta.size) if state is None else state
    inputs = OuterInputs(
        theta,
        OuterGradient(np.asarray(delta, np.float32), factor),
        np.empty_like(theta),
        np.empty_like(state),
        steps,
        ages=(0,),
    )
    return member.apply(config, state, inputs, Key(0))[:2]


def test_table_has_the_words_of_the_configuration() -> None:
    assert tuple(OUTER_OPTIMIZERS) == CHOICES["outer"]


def test_published_nesterov_vector() -> None:
    theta, state, seen = np.array([1.0]), None, []
    for _ in range(3):
        theta, state = step("nesterov", theta, [0.1], state, 0.7, 0.9)
        seen.append(float(theta[0]))
    assert seen == pytest.approx([0.867, 0.6773, 0.43657], abs=1e-6)


@pytest.mark.parametrize("size", [1, 15, 16, 1000])
@given(eta=st.floats(0, 2), mu=st.floats(0, 0.99), seed=st.integers(0, 99))
@settings(max_examples=20)
def test_nesterov_against_oracle(size: int, eta: float, mu: float, seed: int) -> None:
    theta, delta, b = np.random.default_rng(seed).standard_normal((3, size)).astype(np.float32)
    expected = oracle.nesterov(theta, delta, b, float(np.float32(eta)), float(np.float32(mu)))
    got = step("nesterov", theta, delta, b[None], eta, mu)
    scale = np.abs(theta) + 2 * eta * (np.abs(delta) + np.abs(b))
    assert oracle.ulps(got[0], expected[0], scale) <= 4
    assert oracle.ulps(got[1][0], expected[1], np.abs(b) + np.abs(delta)) <= 4


@pytest.mark.parametrize("rule", RULES)
def test_state_and_interface_are_those_of_optax(rule: str) -> None:
    reference = optax.sgd(0.7, momentum=0.9, nesterov=True) if rule == "nesterov" else optax.sgd(0.7)
    theta = np.random.default_rng(0).standard_normal(50).astype(np.float32)
    expected, expected_state = theta, reference.init(theta)
    state: Any = None
    for turn in range(5):
        delta = np.random.default_rng(turn + 1).standard_normal(50).astype(np.float32)
        updates, expected_state = reference.update(delta, expected_state, expected)
        expected = np.asarray(optax.apply_updates(expected, updates))
        theta, state = step(rule, theta, delta, state, 0.7, 0.9, steps=turn)
    assert theta == pytest.approx(expected, abs=1e-5)
    assert state.shape == (OUTER_OPTIMIZERS[rule].vectors, 50)
    if rule == "nesterov":
        assert state[0] == pytest.approx(np.asarray(expected_state[0].trace), abs=1e-5)


@pytest.mark.parametrize("rule", RULES)
def test_without_momentum_each_rule_is_a_plain_step(rule: str) -> None:
    theta, delta = np.random.default_rng(3).standard_normal((2, 40)).astype(np.float32)
    assert step(rule, theta, delta, None, 1.0, 0.0)[0] == pytest.approx(theta - delta, abs=1e-7)


@pytest.mark.parametrize("rule", RULES)
def test_pieces_give_the_bits_of_the_whole(rule: str) -> None:
    theta, delta = np.random.default_rng(4).standard_normal((2, 1000)).astype(np.float32)
    whole = step(rule, theta, delta, None, 0.5, 0.9)[0]
    parts = [step(rule, theta[a:b], delta[a:b], None, 0.5, 0.9)[0] for a, b in ((0, 17), (17, 500), (500, 1000))]
    assert np.concatenate(parts).tobytes() == whole.tobytes()


@pytest.mark.parametrize("rule", RULES)
def test_factor_scales_the_gradient(rule: str) -> None:
    theta, delta = np.random.default_rng(5).standard_normal((2, 40)).astype(np.float32)
    scaled = step(rule, theta, delta, None, 0.5, 0.9, factor=4.0)
    plain = step(rule, theta, 4 * delta, None, 0.5, 0.9)
    assert all(np.array_equal(a, b) for a, b in zip(scaled, plain, strict=True))
