"""Merge rules, one file each: contributions and weights to one outer gradient."""

from workbench.algorithms.aggregators.mean import MEAN
from workbench.algorithms.aggregators.rda import RDA
from workbench.algorithms.slots import Aggregator

AGGREGATORS: dict[str, Aggregator] = {
    "mean": MEAN,
    "rda": RDA,
}
"""Merge rules by the name that configuration and tape use."""

__all__ = ["AGGREGATORS"]
