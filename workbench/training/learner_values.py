"""What a learner's arithmetic takes and gives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.models.functional import Parameters


class StepResult(NamedTuple):
    """What one inner step did.

    Attributes
    ----------
    loss : float
        Before the step, mean over its batch [nats per byte].
    tokens : int
        Bytes that were predicted.
    batch, accumulation : int
        Sequences in a micro-batch, micro-batches.
    """

    loss: float
    tokens: int
    batch: int
    accumulation: int


class Captured(NamedTuple):
    """A contribution as it leaves the learner.

    Attributes
    ----------
    payload : object
        What the codec made of the fragment.
    digest : int
        xxh3-64 of the payload's bytes.
    nbytes : int
        Bytes of the payload.
    finite : bool
        Whether every value that was coded is finite.
    """

    payload: Any
    digest: int
    nbytes: int
    finite: bool


class Incoming(NamedTuple):
    """A fragment of the syncer, copied.

    Attributes
    ----------
    theta : array (size,), float32
    tensors : dict of arrays
        The same by name, on the device.
    """

    theta: np.ndarray
    tensors: Parameters
