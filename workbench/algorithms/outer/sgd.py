"""Plain gradient step on the outer gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.algorithms.compiled import kernel
from workbench.algorithms.slots import Key, OuterConfig, OuterInputs, OuterOptimizer


@kernel
def _step(theta, direction, factor, rate, theta_out):  # type: ignore[no-untyped-def]
    for j in range(len(theta)):
        theta_out[j] = theta[j] - rate * (factor * direction[j])


def init(config: OuterConfig, size: int) -> np.ndarray:
    """No memory, (0, size)."""
    return np.zeros((0, size), np.float32)


def apply(config: OuterConfig, state: np.ndarray, inputs: OuterInputs, key: Key) -> tuple[np.ndarray, np.ndarray, Any]:
    """Theta = Theta - eta Delta; eta = 1 is local SGD or FedAvg (arXiv 1602.05629).  The momentum is not used."""
    direction, factor = inputs.gradient.direction, np.float32(inputs.gradient.factor)
    _step(inputs.theta, direction, factor, np.float32(config.rate), inputs.theta_out)
    return inputs.theta_out, inputs.state_out, ()


SGD = OuterOptimizer(init=init, apply=apply, vectors=0)
