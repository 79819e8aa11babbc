"""Layer fragmentation: neighbouring layers travel together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.config import ConfigError

if TYPE_CHECKING:
    from workbench.algorithms.fragments import TensorSpec


def layer(tensors: tuple[TensorSpec, ...], fragments: int) -> tuple[int, ...]:
    """Whole layers in order of depth, cut into P runs of neighbours (bursty: layers differ in size).

    The units are the embeddings, then the layers, then every other tensor outside the layers by name; unit i of U
    goes to fragment floor(i P / U).

    Raises
    ------
    ConfigError
        If P is above U: a layer is never cut.
    """
    units = [unit_of(spec) for spec in tensors]
    order = sorted(set(units))
    if fragments > len(order):
        raise ConfigError(
            f"fragments = {fragments} is more than the {len(order)} layers and outside tensors that fragmentation = "
            f"'layer' keeps whole; allowed: 1 to {len(order)}, or fragmentation = 'balanced'"
        )
    rank = {unit: i for i, unit in enumerate(order)}
    return tuple(rank[unit] * fragments // len(order) for unit in units)


def unit_of(spec: TensorSpec) -> tuple[int, int, str]:
    """Sort key of the unit that a tensor belongs to: (before, in or after the layers; layer; name)."""
    if spec.layer >= 0:
        return (1, spec.layer, "")
    return (0 if spec.kind == "embedding" else 2, -1, spec.name)
