"""The learner keeps the steps that it made since its contribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.algorithms.compiled import kernel
from workbench.algorithms.flush import flush_to_zero
from workbench.algorithms.slots import Fold, FoldConfig, FoldInputs, Key, State


@kernel
def _shift(local, update, reference, out):  # type: ignore[no-untyped-def]
    for j in range(len(local)):
        out[j] = update[j] + (local[j] - reference[j])


def init(config: FoldConfig) -> State:
    """No memory."""
    return ()


def apply(config: FoldConfig, state: State, inputs: FoldInputs, key: Key) -> tuple[np.ndarray, State, Any]:
    """theta = Theta + (theta - r), r the captured copy that the update contains, else the base (ALGORITHM section 3).

    Raises
    ------
    ValueError
        Without a reference.
    """
    if inputs.reference is None:
        raise ValueError("delay_corrected folds need a reference; expected the captured copy or the base, not None")
    out = np.empty(inputs.local.shape, np.float32)
    with flush_to_zero():
        _shift(inputs.local, inputs.update, inputs.reference, out)
    return out, state, ()


DELAY_CORRECTED = Fold(init=init, apply=apply, keeps_tail=True)
