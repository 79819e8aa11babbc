"""The model as a pure function of a flat dictionary of parameters."""

from __future__ import annotations

from collections.abc import Callable

import jax
from flax import nnx

from workbench.config import ModelConfig
from workbench.models.decoder import Decoder, cross_entropy, named

Parameters = dict[str, jax.Array]
"""Tensors by name, sorted by name: what the compiled step reads and returns."""


def loss_function(config: ModelConfig) -> Callable[[Parameters, jax.Array], jax.Array]:
    """Mean next-byte cross entropy as a function of parameters and one batch.

    Parameters
    ----------
    config : ModelConfig

    Returns
    -------
    function (parameters, batch (batch, context + 1)) -> scalar [nats per byte]
        Pure, to be differentiated and compiled.
    """
    graph, state = nnx.split(nnx.eval_shape(lambda: Decoder(config)))

    def loss(parameters: Parameters, batch: jax.Array) -> jax.Array:
        filled = jax.tree.map(lambda leaf: leaf, state)
        for name, parameter in named(filled).items():
            parameter.set_value(parameters[name])
        return cross_entropy(nnx.merge(graph, filled), batch)

    return loss
