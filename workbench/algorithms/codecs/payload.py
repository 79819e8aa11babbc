"""Buffers of payloads: what came in as elements, where output goes."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.algorithms.compiled import aligned


def elements(payload: Any, dtype: np.dtype[Any], base: np.ndarray | None) -> np.ndarray:
    """Payload (array or any buffer) as a vector of ``dtype``, not copied.

    Raises
    ------
    ValueError
        If its bytes are no whole number of elements, or not one for each of the base.
    """
    raw = np.frombuffer(np.ascontiguousarray(payload) if isinstance(payload, np.ndarray) else payload, np.uint8)
    expected = raw.nbytes // dtype.itemsize if base is None else base.size
    if raw.nbytes != expected * dtype.itemsize:
        raise ValueError(
            f"a payload of {raw.nbytes} bytes came; expected {expected * dtype.itemsize}, "
            f"{dtype.itemsize} for each of {expected} parameters"
        )
    return raw.view(dtype)


def target(out: np.ndarray | None, size: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Output vector (size,): the one given, or a fresh one.

    Raises
    ------
    ValueError
        If the one given has another size or type.
    """
    if out is None:
        return aligned((size,), dtype)
    if out.shape != (size,) or out.dtype != dtype:
        raise ValueError(f"an output of shape {out.shape} and type {out.dtype} came; expected ({size},) and {dtype}")
    return out


def needed(base: np.ndarray | None, codec: str) -> np.ndarray:
    """The base, which a difference cannot do without.

    Raises
    ------
    ValueError
        If there is none.
    """
    if base is None:
        raise ValueError(f"codec {codec} codes the difference to a base; expected the base version's values, not None")
    return base
