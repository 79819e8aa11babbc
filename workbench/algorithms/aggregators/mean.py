"""Direct average of the contributions."""

from __future__ import annotations

from typing import Any

from workbench.algorithms.aggregators.differences import average_geometry
from workbench.algorithms.slots import Aggregator, AggregatorInputs, Geometry, Key, OuterGradient, State


def init(config: Any) -> State:
    """No memory."""
    return ()


def apply(config: Any, state: State, inputs: AggregatorInputs, key: Key) -> tuple[OuterGradient, State, Geometry]:
    """Delta = sum w v / sum w (DiLoCo, arXiv 2311.08105; FedAvg, arXiv 1602.05629).

    The divisor is the weight of those who contributed, never the number of learners.
    """
    squares, dots, average = average_geometry(*inputs)
    return OuterGradient(inputs.out, 1.0), state, Geometry(squares, dots, average, average)


MEAN = Aggregator(init=init, apply=apply, elementwise=True)
