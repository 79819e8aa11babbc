"""The learner takes the syncer's fragment as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.algorithms.slots import Fold, FoldConfig, FoldInputs, Key, State


def init(config: FoldConfig) -> State:
    """No memory."""
    return ()


def apply(config: FoldConfig, state: State, inputs: FoldInputs, key: Key) -> tuple[np.ndarray, State, Any]:
    """theta = Theta (arXiv 2604.21428, alpha = 0)."""
    return np.array(inputs.update, np.float32), state, ()


OVERWRITE = Fold(init=init, apply=apply, keeps_tail=False)
