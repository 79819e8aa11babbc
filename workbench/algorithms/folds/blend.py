"""The learner keeps a share of its own parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.algorithms.compiled import kernel
from workbench.algorithms.flush import flush_to_zero
from workbench.algorithms.slots import Fold, FoldConfig, FoldInputs, Key, State


@kernel
def _blend(local, update, kept, taken, out):  # type: ignore[no-untyped-def]
    for j in range(len(local)):
        out[j] = kept * local[j] + taken * update[j]


def init(config: FoldConfig) -> State:
    """No memory."""
    return ()


def apply(config: FoldConfig, state: State, inputs: FoldInputs, key: Key) -> tuple[np.ndarray, State, Any]:
    """theta = alpha theta + (1 - alpha) Theta (Streaming DiLoCo, arXiv 2501.18512, with alpha = 0.5)."""
    out = np.empty(inputs.local.shape, np.float32)
    with flush_to_zero():
        _blend(inputs.local, inputs.update, np.float32(config.alpha), np.float32(1 - config.alpha), out)
    return out, state, ()


BLEND = Fold(init=init, apply=apply, keeps_tail=False)
