"""Causal grouped-query attention with rotary positions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from workbench.config import ModelConfig
from workbench.models.parameters import matrix

ROPE_BASE = 10_000.0


def rotary(x: jax.Array, positions: jax.Array) -> jax.Array:
    """Turn pairs of features by an angle that grows with the position (RoPE).

    Feature ``i`` and ``i + size / 2`` of a head are one pair; it turns by ``position * base ** (-2 i / size)``.
    A query at position a and a key at position b then meet in a product that depends on a - b alone.

    Parameters
    ----------
    x : array (batch, position, head, size)
        Queries or keys; ``size`` is even.
    positions : array (position,)
        Whole numbers.

    Returns
    -------
    array
        Of the shape of ``x``, with the norm of every pair unchanged.

    References
    ----------
    Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", arXiv 2104.09864.
    """
    half = x.shape[-1] // 2
    frequencies = ROPE_BASE ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angles = positions.astype(jnp.float32)[:, None] * frequencies
    cosine, sine = jnp.cos(angles)[:, None, :], jnp.sin(angles)[:, None, :]
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def grouped_attention(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """Causal attention in which groups of query heads share one key/value head.

    Query head ``h`` reads key/value head ``h // (heads / kv_heads)``.  A position sees itself and what came before.

    Parameters
    ----------
    query : array (batch, position, head, size)
    key, value : array (batch, position, kv_head, size)
        ``head`` is a multiple of ``kv_head``.

    Returns
    -------
    array (batch, position, head, size)

    References
    ----------
    Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models", arXiv 2305.13245.
    """
    batch, length, heads, size = query.shape
    kv_heads = key.shape[2]
    grouped = query.reshape(batch, length, kv_heads, heads // kv_heads, size)
    scores = jnp.einsum("bqkgs,bpks->bkgqp", grouped, key) * size**-0.5
    visible = jnp.tril(jnp.ones((length, length), dtype=bool))
    weights = jax.nn.softmax(jnp.where(visible, scores, -jnp.inf), axis=-1)
    return jnp.einsum("bkgqp,bpks->bqkgs", weights, value).reshape(batch, length, heads, size)


class Attention(nnx.Module):
    """Grouped-query attention block: projections, rotary positions, causal softmax, output projection.

    Attributes
    ----------
    query : Param (width, head * size)
    key, value : Param (width, kv_head * size)
    output : Param (head * size, width)
    """

    def __init__(self, config: ModelConfig) -> None:
        self.heads, self.kv_heads = config.heads, config.kv_heads
        self.size = config.width // config.heads
        self.query = matrix(config.width, config.heads * self.size)
        self.key = matrix(config.width, config.kv_heads * self.size)
        self.value = matrix(config.width, config.kv_heads * self.size)
        self.output = matrix(config.heads * self.size, config.width)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Map activations (batch, position, width) to the same shape."""
        batch, length, _ = x.shape
        positions = jnp.arange(length)
        query = (x @ self.query[...]).reshape(batch, length, self.heads, self.size)
        key = (x @ self.key[...]).reshape(batch, length, self.kv_heads, self.size)
        value = (x @ self.value[...]).reshape(batch, length, self.kv_heads, self.size)
        mixed = grouped_attention(rotary(query, positions), rotary(key, positions), value)
        return mixed.reshape(batch, length, -1) @ self.output[...]
