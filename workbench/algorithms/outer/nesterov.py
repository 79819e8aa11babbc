"""Nesterov momentum on the outer gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.algorithms.compiled import kernel
from workbench.algorithms.slots import Key, OuterConfig, OuterInputs, OuterOptimizer


@kernel
def _step(theta, direction, factor, momentum, rate, decay, theta_out, momentum_out):  # type: ignore[no-untyped-def]
    for j in range(len(theta)):
        d = factor * direction[j]
        b = decay * momentum[j] + d
        momentum_out[j] = b
        theta_out[j] = theta[j] - rate * (d + decay * b)


def init(config: OuterConfig, size: int) -> np.ndarray:
    """Momentum zero, (1, size)."""
    return np.zeros((1, size), np.float32)


def apply(config: OuterConfig, state: np.ndarray, inputs: OuterInputs, key: Key) -> tuple[np.ndarray, np.ndarray, Any]:
    """b = mu b + Delta; Theta = Theta - eta (Delta + mu b) (the form of optax.sgd; DiLoCo, arXiv 2311.08105)."""
    rate, decay = np.float32(config.rate), np.float32(config.momentum)
    direction, factor = inputs.gradient.direction, np.float32(inputs.gradient.factor)
    _step(inputs.theta, direction, factor, state[0], rate, decay, inputs.theta_out, inputs.state_out[0])
    return inputs.theta_out, inputs.state_out, ()


NESTEROV = OuterOptimizer(init=init, apply=apply, vectors=1)
