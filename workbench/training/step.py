"""One inner step in its one compiled form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.config import InnerConfig, ModelConfig
from workbench.models.functional import Parameters, loss_function
from workbench.training.inner import inner_optimizer

Step = Callable[[Parameters, Any, np.ndarray, np.float32], tuple[Parameters, Any, jax.Array]]
"""(parameters, optimiser state, batch, learning rate) to (parameters, optimiser state, loss)."""


def compiled_step(model: ModelConfig, inner: InnerConfig) -> Step:
    """Jitted inner step, one per process for the same model and optimiser.

    The learning rate is an argument, so that neither the schedule nor a live change compiles anew.  Buffers are not
    donated: host copies read the parameters of the last step while the next one runs.  Never map or vectorise this
    function: that changes the last bits.

    Parameters
    ----------
    model : ModelConfig
    inner : InnerConfig
        What is compiled in: optimizer, beta1, beta2, eps, decay, clip.

    Returns
    -------
    Step
        Takes a batch (batch, context + 1), or (accumulation, batch, context + 1): then the gradient is the mean
        over the micro-batches, summed in their order.
    """
    return _compiled(model, _compiled_in(inner))


def fresh_state(inner: InnerConfig, parameters: Parameters) -> Any:
    """Optimiser state (a pytree) of a learner that has made no step."""
    return _fresh_state(_compiled_in(inner))(parameters)


def _compiled_in(inner: InnerConfig) -> InnerConfig:
    """Keep only what changes the compiled program, so that equal programs are shared."""
    fresh = InnerConfig()
    return replace(
        inner,
        rate=fresh.rate,
        final_fraction=fresh.final_fraction,
        schedule=fresh.schedule,
        warmup=fresh.warmup,
        horizon=fresh.horizon,
        batch=fresh.batch,
        accumulation=fresh.accumulation,
    )


@lru_cache(maxsize=16)
def _fresh_state(inner: InnerConfig) -> Callable[[Parameters], Any]:
    return jax.jit(inner_optimizer(inner).init)


@lru_cache(maxsize=16)
def _compiled(model: ModelConfig, inner: InnerConfig) -> Step:
    transformation = inner_optimizer(inner)
    gradient = _accumulated(jax.value_and_grad(loss_function(model)))

    def inner_step(parameters: Parameters, state: Any, batch: jax.Array, rate: jax.Array) -> Any:
        loss, gradients = gradient(parameters, batch)
        directions, state = transformation.update(gradients, state, parameters)
        moved = jax.tree.map(lambda value, direction: value - rate * direction, parameters, directions)
        return moved, state, loss

    return jax.jit(inner_step)


def _accumulated(gradient: Callable[..., Any]) -> Callable[[Parameters, jax.Array], Any]:
    def mean_gradient(parameters: Parameters, batch: jax.Array) -> Any:
        if batch.ndim == 2:
            return gradient(parameters, batch)

        def add(total: Any, micro: jax.Array) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, total, gradient(parameters, micro)), None

        zeros = (jnp.zeros((), jnp.float32), jax.tree.map(jnp.zeros_like, parameters))
        total, _ = jax.lax.scan(add, zeros, batch)
        return jax.tree.map(lambda value: value * np.float32(1 / batch.shape[0]), total)

    return mean_gradient
