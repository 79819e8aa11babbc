"""Declaration of parameters: shape, kind and the spread of the initial values, in one place."""

from __future__ import annotations

import jax.numpy as jnp
from flax import nnx


def matrix(rows: int, columns: int, *, gain: float = 1.0, kind: str = "matrix") -> nnx.Param:
    """Declare a weight matrix (in, out) that starts as Gaussian noise which keeps the variance of what it maps.

    The standard deviation is ``gain / sqrt(in)`` (LeCun et al., "Efficient BackProp", 1998).

    Parameters
    ----------
    rows, columns : int
    gain : float
        Factor on the standard deviation.
    kind : str
        Kind of the tensor in the manifest.

    Returns
    -------
    nnx.Param
        Zeros, float32; its metadata say what `workbench.models.decoder.build` fills in.
    """
    value = jnp.zeros((rows, columns), dtype=jnp.float32)
    return nnx.Param(value, kind=kind, mean=0.0, deviation=gain * rows**-0.5)


def table(entries: int, width: int) -> nnx.Param:
    """Declare an embedding table (entries, width) that starts as Gaussian noise of variance 1."""
    value = jnp.zeros((entries, width), dtype=jnp.float32)
    return nnx.Param(value, kind="embedding", mean=0.0, deviation=1.0)


def scale(width: int) -> nnx.Param:
    """Declare the factors (width,) of a normalisation, which start at 1."""
    return nnx.Param(jnp.zeros((width,), dtype=jnp.float32), kind="vector", mean=1.0, deviation=0.0)
