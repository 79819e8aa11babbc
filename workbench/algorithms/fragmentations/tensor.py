"""Tensor fragmentation: single tensors dealt out by name, uneven."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.algorithms.fragments import TensorSpec


def tensor(tensors: tuple[TensorSpec, ...], fragments: int) -> tuple[int, ...]:
    """Tensor i in order of name to fragment i mod P; with as many fragments as tensors each travels alone."""
    return tuple(i % fragments for i in range(len(tensors)))
