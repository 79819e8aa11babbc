"""Contribution chains, one file each: a decoded contribution to a difference and its weight."""

from workbench.algorithms.contributions.anchored import ANCHORED
from workbench.algorithms.slots import Contribution

CONTRIBUTIONS: dict[str, Contribution] = {
    "anchored": ANCHORED,
}
"""Chains by name."""

__all__ = ["CONTRIBUTIONS"]
