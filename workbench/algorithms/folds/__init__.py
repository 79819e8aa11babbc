"""Folds, one file each: how a learner absorbs the syncer's fragment."""

from workbench.algorithms.folds.blend import BLEND
from workbench.algorithms.folds.delay_corrected import DELAY_CORRECTED
from workbench.algorithms.folds.overwrite import OVERWRITE
from workbench.algorithms.slots import Fold

FOLDS: dict[str, Fold] = {
    "overwrite": OVERWRITE,
    "blend": BLEND,
    "delay_corrected": DELAY_CORRECTED,
}
"""Folds by the name that configuration and tape use."""

__all__ = ["FOLDS"]
