"""Byte-level decoder: RMSNorm, rotary grouped-query attention, gated MLP, untied head."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from workbench.algorithms.seeds import sub_seed
from workbench.config import ModelConfig
from workbench.models.attention import Attention
from workbench.models.parameters import matrix, scale, table

NORM_EPS = 1e-6
HEAD_GAIN = 0.5
"""Logits of an untrained model then have variance 1/4: close to the uniform distribution, yet not flat."""


class RMSNorm(nnx.Module):
    """Divide by the root mean square of the features and scale: ``x / sqrt(mean(x^2) + eps) * scale``.

    Attributes
    ----------
    scale : Param (width,)
        Starts at 1.

    References
    ----------
    Zhang and Sennrich, "Root Mean Square Layer Normalization", arXiv 1910.07467.
    """

    def __init__(self, width: int) -> None:
        self.scale = scale(width)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Normalise the last axis of an array (…, width)."""
        inverse = jax.lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + NORM_EPS)
        return x * inverse * self.scale[...]


class GatedMLP(nnx.Module):
    """Two-branch MLP ``(silu(x gate) * (x up)) down`` (SwiGLU).

    Attributes
    ----------
    gate, up : Param (width, mlp)
    down : Param (mlp, width)

    References
    ----------
    Shazeer, "GLU Variants Improve Transformer", arXiv 2002.05202.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.gate = matrix(config.width, config.mlp)
        self.up = matrix(config.width, config.mlp)
        self.down = matrix(config.mlp, config.width)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Map activations (…, width) to the same shape."""
        return (jax.nn.silu(x @ self.gate[...]) * (x @ self.up[...])) @ self.down[...]


class Block(nnx.Module):
    """Pre-norm residual block: attention, then the gated MLP."""

    def __init__(self, config: ModelConfig) -> None:
        self.attention_norm = RMSNorm(config.width)
        self.attention = Attention(config)
        self.mlp_norm = RMSNorm(config.width)
        self.mlp = GatedMLP(config)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Map activations (batch, position, width) to the same shape."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Decoder(nnx.Module):
    """Causal language model over bytes.

    Attributes
    ----------
    embedding : Param (vocab, width)
    layers : list of Block
    norm : RMSNorm
    head : Param (width, vocab)
        Not tied to the embedding.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.embedding = table(config.vocab, config.width)
        self.layers = nnx.List([Block(config) for _ in range(config.layers)])
        self.norm = RMSNorm(config.width)
        self.head = matrix(config.width, config.vocab, gain=HEAD_GAIN, kind="head")

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Logits (batch, position, vocab) for the byte after each position of ``tokens`` (batch, position)."""
        x = self.embedding[...][tokens]
        for block in self.layers:
            x = block(x)
        return self.norm(x) @ self.head[...]


def named(parameters: nnx.State) -> dict[str, nnx.Param]:
    """Parameters by name (``layers.0.attention.query``), sorted by name.

    Parameters
    ----------
    parameters : nnx.State
        ``nnx.state(model, nnx.Param)``, values or abstract.
    """
    return dict(sorted((".".join(map(str, path)), value) for path, value in nnx.to_flat_state(parameters)))


def abstract(config: ModelConfig) -> nnx.State:
    """Parameters of the model as shapes and metadata: nothing is allocated."""
    return nnx.state(nnx.eval_shape(lambda: Decoder(config)), nnx.Param)


def initial_values(config: ModelConfig, seed: int) -> dict[str, np.ndarray]:
    """Initial weights by name: a pure function of the model's sizes and the seed.

    Each tensor draws from a generator of its own, keyed by the seed and its name, so that its values do not
    depend on the other tensors.

    Parameters
    ----------
    config : ModelConfig
    seed : int

    Returns
    -------
    dict of float32 arrays
        Sorted by name.
    """
    values = {}
    for name, parameter in named(abstract(config)).items():
        generator = np.random.Generator(np.random.Philox(key=sub_seed(seed, name)))
        about = parameter.get_metadata()
        noise = generator.standard_normal(parameter.shape, dtype=np.float32)
        values[name] = np.float32(about["mean"]) + np.float32(about["deviation"]) * noise
    return values


def build(config: ModelConfig, seed: int) -> Decoder:
    """Model with the initial weights of `initial_values`.

    Parameters
    ----------
    config : ModelConfig
    seed : int

    Returns
    -------
    Decoder
        Parameters in float32.
    """
    model = Decoder(config)
    values = initial_values(config, seed)
    parameters = nnx.state(model, nnx.Param)
    for name, parameter in named(parameters).items():
        parameter[...] = jnp.asarray(values[name])
    nnx.update(model, parameters)
    return model


def cross_entropy(model: Decoder, batch: jax.Array) -> jax.Array:
    """Mean negative log-likelihood of the next byte [nats per byte].

    Parameters
    ----------
    model : Decoder
    batch : array (batch, context + 1), whole numbers
        Position i predicts position i + 1.

    Returns
    -------
    scalar, float32
    """
    tokens = batch.astype(jnp.int32)
    logits = model(tokens[:, :-1])
    chosen = jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)
