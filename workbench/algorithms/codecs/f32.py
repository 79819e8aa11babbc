"""Parameters as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.algorithms.codecs.payload import elements, target
from workbench.algorithms.slots import Codec, CodecInputs, Key, State

DTYPE = np.dtype("<f4")


def init(config: Any) -> State:
    """No memory."""
    return ()


def code(config: Any, state: State, inputs: CodecInputs, key: Key) -> tuple[np.ndarray, State, Any]:
    """Copy the values, denormals and all."""
    out = target(inputs.out, inputs.values.size, DTYPE)
    np.copyto(out, inputs.values)
    return out, state, ()


def uncode(config: Any, state: State, inputs: CodecInputs, key: Key) -> tuple[np.ndarray, State, Any]:
    """Copy the payload."""
    payload = elements(inputs.values, DTYPE, inputs.base)
    out = target(inputs.out, payload.size, np.dtype(np.float32))
    np.copyto(out, payload)
    return out, state, ()


F32 = Codec(init=init, code=code, uncode=uncode, dtype=DTYPE, needs_base=False)
