"""Host copy of the fragments: written by the training thread, read by the network thread, neither waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np

NO_STEP = -1


@dataclass
class _Buffer:
    """One of the two copies of a fragment; ``generation`` is negative while it is being written."""

    values: np.ndarray
    step: int = NO_STEP
    generation: int = 0


@dataclass
class _Fragment:
    buffers: tuple[_Buffer, _Buffer]
    generation: int = field(default=0)


class HostCopy:
    """Two buffers per fragment with a generation number and the own step that they hold (PROTOCOL section 5).

    The writer fills the older buffer and then makes it the current one.  A reader copies a buffer and looks at its
    generation again: if the writer has come round to it meanwhile, it reads anew.

    Parameters
    ----------
    sizes : list of int
        Elements of each fragment.
    """

    def __init__(self, sizes: list[int]) -> None:
        self._fragments = [
            _Fragment((_Buffer(np.zeros(size, np.float32)), _Buffer(np.zeros(size, np.float32)))) for size in sizes
        ]

    def generation(self, fragment: int) -> int:
        """How often a fragment has been published."""
        return self._fragments[fragment].generation

    def begin(self, fragment: int) -> np.ndarray:
        """Buffer (size,) to fill; it stays invisible until `commit`."""
        buffer = self._back(fragment)
        buffer.generation = -1
        return buffer.values

    def commit(self, fragment: int, step: int, *, supersede: bool = False) -> None:
        """Make the filled buffer the current one.

        Parameters
        ----------
        fragment : int
        step : int
            Own step n after which the fragment was like this.
        supersede : bool
            Nobody may read the other buffer any more: it rests on a base that has been replaced.
        """
        holder = self._fragments[fragment]
        buffer, front = self._back(fragment), self._front(fragment)
        buffer.step = step
        buffer.generation = holder.generation + 1
        holder.generation += 1
        if supersede:
            front.step = NO_STEP

    def read(self, fragment: int, step: int) -> np.ndarray:
        """Copy (size,) of a fragment as it was after own step ``step``.

        The current buffer is looked at first, then the one before it, so that a reader who asks with the counters
        of a step ago gets what belongs to them.

        Raises
        ------
        LookupError
            Neither buffer holds that step.
        """
        while True:
            for buffer in (self._front(fragment), self._back(fragment)):
                generation = buffer.generation
                if buffer.step != step or generation < 0:
                    continue
                values = buffer.values.copy()
                if buffer.generation == generation:
                    return values
                break  # overtaken while copying: look again
            else:
                _not_published(fragment, self._front(fragment).step, step)

    def _front(self, fragment: int) -> _Buffer:
        holder = self._fragments[fragment]
        return holder.buffers[holder.generation % 2]

    def _back(self, fragment: int) -> _Buffer:
        holder = self._fragments[fragment]
        return holder.buffers[(holder.generation + 1) % 2]


class _Held(NamedTuple):
    """Tensors of a fragment, end to end, and the own step after which it was like this."""

    step: int
    tensors: tuple[Any, ...]


class HostViews:
    """The same where device memory is the host's: tensors, which nobody ever writes, are kept instead of copied.

    Publishing costs a reference for each tensor; the copy is made by whoever reads.  One that reads while the
    training thread publishes has what it took: both generations of a fragment are replaced at once.

    Parameters
    ----------
    fragments : int
    """

    def __init__(self, fragments: int) -> None:
        self._held = [(_Held(NO_STEP, ()), _Held(NO_STEP, ()))] * fragments

    def publish(self, fragment: int, tensors: Sequence[Any], step: int, *, supersede: bool = False) -> None:
        """Make these tensors the current ones.

        Parameters
        ----------
        fragment : int
        tensors : sequence of arrays
            In the order of the fragment's layout; must never be written.
        step : int
            Own step n after which the fragment was like this.
        supersede : bool
            Nobody may read the ones before: they rest on a base that has been replaced.
        """
        before = _Held(NO_STEP, ()) if supersede else self._held[fragment][0]
        self._held[fragment] = (_Held(step, tuple(tensors)), before)

    def read(self, fragment: int, step: int) -> np.ndarray:
        """Copy (size,) of a fragment as it was after own step ``step``; see `HostCopy.read`."""
        both = self._held[fragment]
        for held in both:
            if held.step == step:
                return np.concatenate([np.asarray(tensor).reshape(-1) for tensor in held.tensors])
        _not_published(fragment, both[0].step, step)


def _not_published(fragment: int, held: int, step: int) -> NoReturn:
    raise LookupError(
        f"fragment {fragment} is published as of own step {held}, not {step}; "
        "publish after every step and capture with the step of the last publication"
    )
