"""Declaration of parameters: shape, kind and the spread of the initial values, in one place."""

from __future__ import annotations

import jax.numpy as jnp
from flax import nnx


def matrix(rows: int, columns: int, *, depth: int = 0, gain: float = 1.0, kind: str = "matrix") -> nnx.Param:
    """Declare a weight matrix (in, out) that starts as Gaussian noise which keeps the variance of what it maps.

    The standard deviation is ``gain / sqrt(in)``; a matrix that writes into the residual stream is divided by
    ``sqrt(2 depth)`` besides, so that the stream's variance does not grow with the number of layers
    (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019).

    Parameters
    ----------
    rows, columns : int
    depth : int
        Layers of the model for a matrix that writes into the residual stream, else 0.
    gain : float
        Factor on the standard deviation.
    kind : str
        Kind of the tensor in the manifest.

    Returns
    -------
    nnx.Param
        Zeros, float32; its metadata say what `workbench.models.decoder.build` fills in.
    """
    deviation = gain * rows**-0.5
    if depth:
        deviation *= (2 * depth) ** -0.5
    return nnx.Param(jnp.zeros((rows, columns), dtype=jnp.float32), kind=kind, mean=0.0, deviation=deviation)


def table(entries: int, width: int) -> nnx.Param:
    """Declare an embedding table (entries, width) that starts as Gaussian noise of variance 1."""
    value = jnp.zeros((entries, width), dtype=jnp.float32)
    return nnx.Param(value, kind="embedding", mean=0.0, deviation=1.0)


def scale(width: int) -> nnx.Param:
    """Declare the factors (width,) of a normalisation, which start at 1."""
    return nnx.Param(jnp.zeros((width,), dtype=jnp.float32), kind="vector", mean=1.0, deviation=0.0)
