"""Between tensors by name and flat fragments."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

from workbench.algorithms.fragments import Fragmentation, FragmentLayout, fragment
from workbench.algorithms.seeds import sub_seed
from workbench.config import ModelConfig, RunConfig
from workbench.models import initial_values, manifest
from workbench.models.functional import Parameters


def fragmentation_of(config: RunConfig) -> Fragmentation:
    """Fragmentation of the run's model (rule ``config.fragmentation``, P = ``config.fragments``).

    Raises
    ------
    ConfigError
        More fragments than tensors.
    """
    return _fragmentation(config.model, config.fragments, config.fragmentation)


@lru_cache(maxsize=16)
def _fragmentation(model: ModelConfig, fragments: int, rule: str) -> Fragmentation:
    return fragment(manifest(model), fragments, rule)


def initial_weights(config: RunConfig) -> list[np.ndarray]:
    """Initial weights of a run, flat float32 (size,) per fragment: a pure function of model, seed and fragmentation."""
    values = initial_values(config.model, sub_seed(config.seed, "weights"))
    fragmentation = fragmentation_of(config)
    return [flatten(values, fragmentation.layout(p)) for p in range(config.fragments)]


def flatten(
    tensors: Parameters | dict[str, np.ndarray], layout: FragmentLayout, out: np.ndarray | None = None
) -> np.ndarray:
    """Lay the tensors of a fragment end to end.

    Parameters
    ----------
    tensors : dict of arrays
        By name; more names than the fragment's do no harm.
    layout : FragmentLayout
    out : array (size,), float32, optional
        Where to write.

    Returns
    -------
    array (size,), float32
    """
    flat = np.empty(layout.size, np.float32) if out is None else out
    for name, (begin, end) in zip(layout.names, pairwise(layout.offsets), strict=True):
        flat[begin:end] = np.asarray(tensors[name]).reshape(-1)
    return flat


def tensors_of(flat: np.ndarray, layout: FragmentLayout) -> Parameters:
    """Tensors of a flat fragment, copied: the flat array may be overwritten afterwards.

    Raises
    ------
    ValueError
        The fragment has another size or another type than the manifest says.
    """
    if flat.shape != (layout.size,) or flat.dtype != np.float32:
        raise ValueError(
            f"a fragment of shape {flat.shape} and type {flat.dtype} came; expected ({layout.size},) and float32"
        )
    result = {}
    for name, shape, (begin, end) in zip(layout.names, layout.shapes, pairwise(layout.offsets), strict=True):
        result[name] = jnp.array(flat[begin:end].reshape(shape), copy=True)
    return result


def all_tensors(flats: list[np.ndarray], fragmentation: Fragmentation) -> Parameters:
    """Tensors of all fragments by name, sorted by name."""
    merged: dict[str, jax.Array] = {}
    for p, flat in enumerate(flats):
        merged.update(tensors_of(flat, fragmentation.layout(p)))
    return dict(sorted(merged.items()))
