"""Balanced tensor fragmentation: the lowest peak on the link."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.algorithms.fragments import TensorSpec


def balanced(tensors: tuple[TensorSpec, ...], fragments: int) -> tuple[int, ...]:
    """Greedy packing: sizes descending, each into the smallest bin.

    Ties between tensors go by name, between bins to the lowest.  The largest bin is at most 4/3 - 1/(3 P) of the
    optimum (Graham 1969, longest processing time first); used by arXiv 2604.21428.
    """
    order = sorted(range(len(tensors)), key=lambda i: (-tensors[i].size, tensors[i].name))
    loads = [0] * fragments
    assignment = [0] * len(tensors)
    for i in order:
        p = loads.index(min(loads))
        assignment[i] = p
        loads[p] += tensors[i].size
    return tuple(assignment)
