"""Codecs, one file each: how a learner's fragment is coded on its way to the syncer."""

from typing import Any

import numpy as np

from workbench.algorithms.codecs.bf16 import BF16
from workbench.algorithms.codecs.f32 import F32
from workbench.algorithms.slots import Codec

CODECS: dict[str, Codec] = {
    "f32": F32,
    "bf16": BF16,
}
"""Codecs by the name that configuration and tape use."""

__all__ = ["CODECS", "decode", "encode"]


def encode(p: int, host_copy: np.ndarray, base: np.ndarray | None, codec: str) -> np.ndarray:
    """Payload of fragment ``p``.

    Parameters
    ----------
    p : int
        Fragment, named in errors.
    host_copy : float32 array (size,)
        Published copy of the learner's parameters.
    base : float32 array (size,) or None
        The version last folded from the syncer; codecs that code a difference need it.
    codec : str
        Key of `CODECS`.

    Returns
    -------
    array (size,), of the codec's type
        Never a view of the host copy.

    Raises
    ------
    ValueError
        If the codec is unknown or lacks its base.
    """
    return _coder(p, codec).encode(host_copy, base)


def decode(p: int, payload: Any, base: np.ndarray | None, codec: str) -> np.ndarray:
    """Parameters (size,), float32, of a payload of fragment ``p``; the counterpart of `encode`.

    Raises
    ------
    ValueError
        If the codec is unknown, lacks its base, or the payload has another size.
    """
    return _coder(p, codec).decode(payload, base)


def _coder(p: int, codec: str) -> Codec:
    if codec not in CODECS:
        raise ValueError(f"codec {codec!r} of fragment {p} is unknown; allowed: {', '.join(CODECS)}")
    return CODECS[codec]
