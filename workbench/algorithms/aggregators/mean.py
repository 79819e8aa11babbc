"""Direct average of the contributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.algorithms.aggregators.geometry import geometry
from workbench.algorithms.slots import Aggregator, AggregatorInputs, Geometry, Key, State


def init(config: Any) -> State:
    """No memory."""
    return ()


def apply(config: Any, state: State, inputs: AggregatorInputs, key: Key) -> tuple[np.ndarray, State, Geometry]:
    """Delta = sum w v / sum w (DiLoCo, arXiv 2311.08105; FedAvg, arXiv 1602.05629).

    The divisor is the weight of those who contributed, never the number of learners.
    """
    squares, dots, average = geometry(
        inputs.anchors, inputs.values, inputs.weights, inputs.low, inputs.high, inputs.out
    )
    return inputs.out, state, Geometry(squares, dots, average, average)


MEAN = Aggregator(init=init, apply=apply, elementwise=True)
