"""The model cut into fragments: which tensor travels in which of the P rounds of a period.

See ALGORITHM section 5 (arXiv 2604.21428).  A rule only assigns; order and layout are the same for all: tensors
sorted by name, those of a fragment laid end to end in one flat float32 vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

from workbench.algorithms.fragmentations.balanced import balanced
from workbench.algorithms.fragmentations.layer import layer
from workbench.algorithms.fragmentations.strided import strided
from workbench.algorithms.fragmentations.tensor import tensor
from workbench.config import ConfigError


class TensorSpec(NamedTuple):
    """One parameter tensor of the model.

    Attributes
    ----------
    name : str
        Unique within the model.
    shape : tuple of int
    dtype : str
        As numpy spells it.
    kind : str
        ``embedding``, ``head``, ``matrix`` or ``vector``.
    layer : int
        Block that it belongs to, from 0; -1 for none.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: str
    layer: int = -1

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class FragmentLayout(NamedTuple):
    """Where the tensors of one fragment lie in its flat vector.

    Attributes
    ----------
    names, shapes, kinds : tuple, shape (tensor,)
        Sorted by name.
    offsets : tuple of int, shape (tensor + 1,)
        Tensor i is ``flat[offsets[i]:offsets[i + 1]]``.
    size : int
        Elements of the fragment.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]
    offsets: tuple[int, ...]
    size: int


class Fragmentation(NamedTuple):
    """A model's tensors and the fragment of each.

    Attributes
    ----------
    tensors : tuple of TensorSpec, shape (tensor,)
        Sorted by name.
    assignment : tuple of int, shape (tensor,)
        Fragment, 0 .. P - 1; none is empty.
    fragments : int
        P.
    """

    tensors: tuple[TensorSpec, ...]
    assignment: tuple[int, ...]
    fragments: int

    def members(self, p: int) -> tuple[TensorSpec, ...]:
        """Tensors of fragment ``p``, sorted by name."""
        return tuple(t for t, q in zip(self.tensors, self.assignment, strict=True) if q == p)

    def layout(self, p: int) -> FragmentLayout:
        """Place of each tensor in the flat vector of fragment ``p``."""
        members = self.members(p)
        offsets = [0]
        for member in members:
            offsets.append(offsets[-1] + member.size)
        return FragmentLayout(
            names=tuple(t.name for t in members),
            shapes=tuple(t.shape for t in members),
            kinds=tuple(t.kind for t in members),
            offsets=tuple(offsets),
            size=offsets[-1],
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Elements of each fragment, shape (fragment,)."""
        totals = [0] * self.fragments
        for spec, p in zip(self.tensors, self.assignment, strict=True):
            totals[p] += spec.size
        return tuple(totals)


FragmentationRule = Callable[[tuple[TensorSpec, ...], int], tuple[int, ...]]
"""(tensors sorted by name, P) to the fragment of each tensor."""

FRAGMENTATIONS: dict[str, FragmentationRule] = {
    "balanced": balanced,
    "layer": layer,
    "tensor": tensor,
    "strided": strided,
}
"""Fragmentation rules by the name that configuration and tape use."""


def fragment(tensors: Iterable[TensorSpec], fragments: int, rule: str) -> Fragmentation:
    """Cut a model into P fragments.

    Parameters
    ----------
    tensors : iterable of TensorSpec
        In any order.
    fragments : int
        P.
    rule : str
        Key of `FRAGMENTATIONS`.

    Raises
    ------
    ConfigError
        If the rule is unknown, two tensors share a name, P is below 1 or above the number of tensors, or the rule
        leaves a fragment without a tensor (``layer`` and ``strided`` cut between whole layers only, so they need as
        many layers and outside tensors as fragments).
    """
    ordered = tuple(sorted(tensors, key=lambda spec: spec.name))
    if rule not in FRAGMENTATIONS:
        raise ConfigError(f"fragmentation = {rule!r} is unknown; allowed: {', '.join(FRAGMENTATIONS)}")
    for before, after in pairwise(ordered):
        if before.name == after.name:
            raise ConfigError(f"two tensors are named {after.name!r}; expected a name of its own for each")
    if not 1 <= fragments <= len(ordered):
        raise ConfigError(
            f"fragments = {fragments} cannot be cut from {len(ordered)} tensors; allowed: 1 to {len(ordered)} "
            f"(try --set fragments={max(len(ordered), 1)})"
        )
    result = Fragmentation(ordered, FRAGMENTATIONS[rule](ordered, fragments), fragments)
    empty = sorted(set(range(fragments)) - set(result.assignment))
    if empty:
        raise ConfigError(
            f"fragmentation = {rule!r} leaves {len(empty)} of {fragments} fragments empty (first: {empty[0]}); "
            "expected a tensor in each; try fragmentation = 'balanced', or fewer fragments"
        )
    return result
