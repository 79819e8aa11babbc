"""Radial-directional averaging: lengths and directions are averaged apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.algorithms.aggregators.differences import BLOCK, average_geometry, weighted_sum
from workbench.algorithms.aggregators.mean import MEAN
from workbench.algorithms.slots import Aggregator, AggregatorInputs, Geometry, Key, OuterGradient, State

CANCELLED = 1e-6
"""Length of the mean direction at or below which it counts as none: in floats it never vanishes exactly."""


def init(config: Any) -> State:
    """No memory."""
    return ()


def apply(config: Any, state: State, inputs: AggregatorInputs, key: Key) -> tuple[OuterGradient, State, Geometry]:
    """Delta = (sum w ||v|| / sum w) phi(sum w phi(v)) per tensor, phi(x) = x / ||x||, phi(0) = 0 (arXiv 2604.21428).

    Outer gradients of different learners are nearly orthogonal, so their mean shrinks like 1/sqrt(M); this keeps the
    norm.  A zero v counts in the mean of the norms.  Where the directions cancel (`CANCELLED`), and for a single
    contributor, for whom both are the same, the direct average is taken.
    """
    anchors, values, shares, low, high, out = inputs
    if len(shares) == 1:
        return MEAN.apply(config, state, inputs, key)
    block = np.empty(min(BLOCK, high - low), np.float32)
    squares, dots, average = average_geometry(anchors, values, shares, low, high, block)
    norms = np.sqrt(squares)
    directions = np.divide(shares, norms, out=np.zeros_like(norms), where=norms != 0)
    length = math.sqrt(weighted_sum(anchors, values, directions, low, high, out))
    if length <= CANCELLED:
        weighted_sum(anchors, values, shares, low, high, out)
        return OuterGradient(out, 1.0), state, Geometry(squares, dots, average, average)
    radius = math.fsum((shares * norms).tolist()) if np.isfinite(norms).all() else math.nan
    return OuterGradient(out, radius / length), state, Geometry(squares, dots, average, radius * radius)


RDA = Aggregator(init=init, apply=apply, elementwise=False, direct_kinds=("embedding",))
