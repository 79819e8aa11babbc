"""Names, shapes and kinds of a model's tensors, without allocating one."""

from __future__ import annotations

from workbench.algorithms.fragments import TensorSpec
from workbench.config import ModelConfig
from workbench.models.decoder import abstract, named


def layer_of(name: str) -> int:
    """Layer of a tensor name (``layers.3.mlp.up`` is in layer 3), -1 outside the layers."""
    parts = name.split(".")
    return int(parts[1]) if parts[0] == "layers" else -1


def manifest(config: ModelConfig) -> tuple[TensorSpec, ...]:
    """Tensors of the model in the order of their names.

    Parameters
    ----------
    config : ModelConfig

    Returns
    -------
    tuple of TensorSpec
        Kind is ``embedding``, ``matrix``, ``vector`` or ``head``; layer -1 lies outside the layers.
    """
    return tuple(
        TensorSpec(
            name=name,
            shape=tuple(parameter.shape),
            dtype=str(parameter.dtype),
            kind=parameter.get_metadata()["kind"],
            layer=layer_of(name),
        )
        for name, parameter in named(abstract(config)).items()
    )
