"""Strided layers: layer i to fragment i mod P."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.algorithms.fragments import TensorSpec


def strided(tensors: tuple[TensorSpec, ...], fragments: int) -> tuple[int, ...]:
    """Layer i to fragment i mod P; tensors outside the layers, by name, continue the count (arXiv 2501.18512)."""
    count = max((spec.layer for spec in tensors), default=-1) + 1
    outside = {spec.name: count + i for i, spec in enumerate(spec for spec in tensors if spec.layer < 0)}
    return tuple((spec.layer if spec.layer >= 0 else outside[spec.name]) % fragments for spec in tensors)
