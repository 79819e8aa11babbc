"""Outer optimisers, one file each: the outer gradient to a step of the syncer's fragment."""

from workbench.algorithms.outer.nesterov import NESTEROV
from workbench.algorithms.outer.sgd import SGD
from workbench.algorithms.slots import OuterOptimizer

OUTER_OPTIMIZERS: dict[str, OuterOptimizer] = {
    "nesterov": NESTEROV,
    "sgd": SGD,
}
"""Outer optimisers by the name that configuration and tape use."""

__all__ = ["OUTER_OPTIMIZERS"]
