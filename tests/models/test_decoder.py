"""Decoder: shapes, rotary positions, causality, grouped heads, initial loss."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from workbench.config import ModelConfig
from workbench.models import Decoder, build, cross_entropy, initial_values
from workbench.models.attention import grouped_attention, rotary
from workbench.models.decoder import RMSNorm

SMALL = ModelConfig(layers=1, width=16, heads=2, kv_heads=1, mlp=32, context=16)


@pytest.fixture(scope="module")
def model() -> Decoder:
    return build(SMALL, 3)


def random_tokens(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape)


def test_logits_have_one_row_per_position(model: Decoder) -> None:
    logits = model(jnp.asarray(random_tokens(2, 16)))
    assert logits.shape == (2, 16, 256)
    assert logits.dtype == jnp.float32


def test_later_tokens_never_change_earlier_logits(model: Decoder) -> None:
    tokens = random_tokens(1, 16)
    changed = tokens.copy()
    changed[0, 9] = (changed[0, 9] + 1) % 256
    before, after = np.asarray(model(jnp.asarray(tokens))), np.asarray(model(jnp.asarray(changed)))
    assert np.array_equal(before[0, :9], after[0, :9])
    assert (np.abs(before[0, 9:] - after[0, 9:]).max(axis=-1) > 0).all()


def test_untrained_loss_is_close_to_that_of_the_uniform_distribution(model: Decoder) -> None:
    loss = float(cross_entropy(model, jnp.asarray(random_tokens(8, 17))))
    assert loss == pytest.approx(np.log(256), abs=0.3)


def test_loss_is_the_mean_negative_log_probability_of_the_next_byte(model: Decoder) -> None:
    batch = random_tokens(2, 17)
    logits = np.asarray(model(jnp.asarray(batch[:, :-1])), np.float64)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    chosen = np.take_along_axis(probabilities, batch[:, 1:, None], axis=-1)
    assert float(cross_entropy(model, jnp.asarray(batch))) == pytest.approx(-np.log(chosen).mean(), rel=1e-5)


def test_rotary_products_depend_on_the_distance_alone() -> None:
    query, key = np.random.default_rng(1).normal(size=(2, 1, 1, 1, 8)).astype(np.float32)

    def product(a: int, b: int) -> float:
        return float(jnp.sum(rotary(jnp.asarray(query), jnp.array([a])) * rotary(jnp.asarray(key), jnp.array([b]))))

    assert product(7, 4) == pytest.approx(product(30, 27), abs=1e-5)
    assert product(7, 4) != pytest.approx(product(7, 5), abs=1e-3)


def test_rotary_keeps_norms_and_leaves_position_zero_alone() -> None:
    x = np.random.default_rng(2).normal(size=(1, 3, 2, 8)).astype(np.float32)
    turned = np.asarray(rotary(jnp.asarray(x), jnp.arange(3)))
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-5)
    np.testing.assert_array_equal(turned[:, 0], x[:, 0])


def test_grouped_attention_equals_attention_with_repeated_heads() -> None:
    draw = np.random.default_rng(3)
    query = draw.normal(size=(2, 5, 4, 6)).astype(np.float32)
    key, value = draw.normal(size=(2, 2, 5, 2, 6)).astype(np.float32)
    grouped = grouped_attention(jnp.asarray(query), jnp.asarray(key), jnp.asarray(value))
    expected = attention_of_single_heads(query, key.repeat(2, axis=2), value.repeat(2, axis=2))
    np.testing.assert_allclose(np.asarray(grouped), expected, rtol=1e-4, atol=1e-5)


def attention_of_single_heads(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    result = np.zeros_like(query)
    for b, q, h in np.ndindex(query.shape[:3]):
        scores = key[b, : q + 1, h] @ query[b, q, h] / np.sqrt(query.shape[-1])
        weights = np.exp(scores - scores.max())
        result[b, q, h] = (weights / weights.sum()) @ value[b, : q + 1, h]
    return result


def test_norm_divides_by_the_root_mean_square_and_scales() -> None:
    norm = RMSNorm(4)
    norm.scale[...] = jnp.array([1.0, 2.0, 1.0, 1.0])
    np.testing.assert_allclose(norm(jnp.array([3.0, 3.0, -3.0, 3.0])), [1.0, 2.0, -1.0, 1.0], rtol=1e-5)


def test_initial_values_follow_seed_and_name() -> None:
    first, again, other = initial_values(SMALL, 1), initial_values(SMALL, 1), initial_values(SMALL, 2)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["head"], other["head"])
    deeper = initial_values(replace(SMALL, layers=2), 1)
    assert np.array_equal(deeper["layers.0.attention.query"], first["layers.0.attention.query"])
    assert not np.array_equal(deeper["layers.0.attention.query"], deeper["layers.1.attention.query"])


def test_initial_values_have_the_declared_spread() -> None:
    values = initial_values(ModelConfig(), 0)
    assert values["embedding"].std() == pytest.approx(1.0, rel=0.02)
    assert values["layers.0.mlp.up"].std() == pytest.approx(128**-0.5, rel=0.02)
    assert values["layers.1.mlp.down"].std() == pytest.approx(352**-0.5, rel=0.02)
    assert (values["norm.scale"] == 1).all()


def test_built_model_holds_the_initial_values() -> None:
    model, values = build(SMALL, 5), initial_values(SMALL, 5)
    assert np.array_equal(model.layers[0].mlp.up[...], values["layers.0.mlp.up"])
    assert np.array_equal(model.head[...], values["head"])
    assert isinstance(model.head[...], jax.Array)
