"""Validation loss in one compiled form."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import jax
import numpy as np

from workbench.config import ModelConfig
from workbench.models.functional import Parameters, loss_function


@lru_cache(maxsize=16)
def compiled_loss(model: ModelConfig) -> Callable[[Parameters, np.ndarray], jax.Array]:
    """Jitted loss of one batch (batch, context + 1), without a gradient [nats per byte]."""
    return jax.jit(loss_function(model))


def validation_loss(model: ModelConfig, parameters: Parameters, batches: np.ndarray) -> float:
    """Mean loss over held-out batches [nats per byte], summed in their order.

    Parameters
    ----------
    model : ModelConfig
    parameters : dict of arrays
        By tensor name.
    batches : array (batches, batch, context + 1), whole numbers
        All batches are of one size, so that one compiled form serves any number of them.
    """
    loss = compiled_loss(model)
    return sum(float(loss(parameters, batch)) for batch in batches) / len(batches)
