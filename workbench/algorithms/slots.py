"""Interfaces of the strategy slots that live in `workbench.algorithms` (DESIGN section 8).

A member is a pair of pure functions: ``init`` gives its first state, ``apply`` maps (config, state, inputs, key) to
(outputs, state, info).  State is a tuple of arrays or empty; random choices draw from the key, never from the order
of arrival.  A new member is one file and one line in its slot's table.  Outputs may be written into arrays that the
inputs bring along, since fresh memory costs more than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from workbench.algorithms.seeds import sub_seed

State = Any
"""A pytree: arrays in tuples; ``()`` for a member without memory."""


class Key(NamedTuple):
    """What random choices of a member may depend on.

    Attributes
    ----------
    seed, fragment, version, learner : int
        Seed of the run, fragment, version that is being made, learner (-1 where it does not apply).
    """

    seed: int
    fragment: int = -1
    version: int = -1
    learner: int = -1

    def seed_for(self, name: str) -> int:
        """64-bit seed of the choice ``name`` under this key."""
        return sub_seed(self.seed, name, self.fragment, self.version, self.learner)


class InnerOptimizer(Protocol):
    """Inner optimiser of a learner: an optax transformation whose update may see the last global value."""

    def init(self, params: Any) -> Any:
        """First state for ``params`` (a pytree)."""

    def update(self, updates: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        """(updates, state) for gradients ``updates``; ``extra`` may hold ``base``, the last global value."""


class ContributionInputs(NamedTuple):
    """One learner's contribution to a fragment: ``value`` as decoded, ``current`` Theta, ``base`` its base (size,)."""

    value: np.ndarray
    current: np.ndarray
    base: np.ndarray
    c_steps: int
    c_tokens: int
    age: int


class Anchored(NamedTuple):
    """What enters the merge: v = ``anchor - value`` (size,), counted with ``weight``."""

    anchor: np.ndarray
    value: np.ndarray
    weight: float


class Contribution(NamedTuple):
    """Slot Contribution: ``apply(config, state, ContributionInputs, key) -> (Anchored, state, info)``."""

    init: Callable[[Any], State]
    apply: Callable[[Any, State, ContributionInputs, Key], tuple[Anchored, State, Any]]


class AggregatorInputs(NamedTuple):
    """Differences of one tensor and where their outer gradient goes.

    Attributes
    ----------
    anchors, values : int64 array, shape (learner,)
        Addresses of the float32 vectors whose differences v = anchor - value are merged, by learner, ascending.
    shares : float64 array, shape (learner,)
        Weights over their sum; above 0.
    low, high : int
        Range of the tensor in those vectors.
    out : float32 array, shape (high - low,)
        Receives the direction of the outer gradient.
    """

    anchors: np.ndarray
    values: np.ndarray
    shares: np.ndarray
    low: int
    high: int
    out: np.ndarray


class OuterGradient(NamedTuple):
    """Delta = ``factor`` x ``direction`` (n,).

    The factor is applied by the outer step: a rule that knows the length only after the direction need not pass over
    it once more.
    """

    direction: np.ndarray
    factor: float


class Geometry(NamedTuple):
    """Sums over the elements of one tensor, from which norms and cosines follow.

    Attributes
    ----------
    squares, dots : float64 array, shape (learner,)
        ||v_m||^2, and <v_m, s> with s the direct average of all.
    average : float
        ||s||^2.
    merged : float
        ||Delta||^2.
    """

    squares: np.ndarray
    dots: np.ndarray
    average: float
    merged: float


class Aggregator(NamedTuple):
    """Slot Aggregator: ``apply(config, state, AggregatorInputs, key) -> (OuterGradient, state, Geometry)``.

    Attributes
    ----------
    init, apply : functions
        The pair.
    elementwise : bool
        Delta of an element depends on that element alone, so a tensor may be merged piece by piece.
    direct_kinds : tuple of str
        Kinds of tensor that take the direct average instead.
    breakdown : float
        Share of arbitrarily bad contributions that it bears (0 for an average).
    """

    init: Callable[[Any], State]
    apply: Callable[[Any, State, AggregatorInputs, Key], tuple[OuterGradient, State, Geometry]]
    elementwise: bool
    direct_kinds: tuple[str, ...] = ()
    breakdown: float = 0.0


class OuterConfig(NamedTuple):
    """Numbers of the outer optimiser: learning rate eta and momentum mu."""

    rate: float
    momentum: float


class OuterInputs(NamedTuple):
    """One outer step on a piece of a fragment.

    Attributes
    ----------
    theta : float32 array, shape (n,)
        Theta before the step.
    gradient : OuterGradient
        Delta.
    theta_out : float32 array, shape (n,)
        Receives Theta after it.
    state_out : float32 array, shape (vector, n)
        Receives the state after it; must not overlap the state before.
    steps : int
        Outer steps made with this state before.
    ages : tuple of int
        Versions between each contribution's base and this merge, by learner.
    """

    theta: np.ndarray
    gradient: OuterGradient
    theta_out: np.ndarray
    state_out: np.ndarray
    steps: int
    ages: tuple[int, ...]


class OuterOptimizer(NamedTuple):
    """Slot OuterOptimizer: ``apply(OuterConfig, state, OuterInputs, key) -> (Theta, state, info)``.

    The state is a float32 array (vector, n) of ``vectors`` rows; ``init(config, n)`` gives the first.  Elementwise,
    so that a fragment may be stepped piece by piece.
    """

    init: Callable[[OuterConfig, int], np.ndarray]
    apply: Callable[[OuterConfig, np.ndarray, OuterInputs, Key], tuple[np.ndarray, np.ndarray, Any]]
    vectors: int


class FoldConfig(NamedTuple):
    """Share ``alpha`` of the learner's own parameters that a blend keeps, 0 .. 1."""

    alpha: float


class FoldInputs(NamedTuple):
    """``local`` theta of the learner, ``update`` Theta, ``reference`` r; float32 (size,) each."""

    local: np.ndarray
    update: np.ndarray
    reference: np.ndarray | None


class Fold(NamedTuple):
    """Slot Fold: ``apply(FoldConfig, state, FoldInputs, key) -> (theta, state, info)``, theta a fresh array.

    Attributes
    ----------
    init, apply : functions
        The pair.
    keeps_tail : bool
        The steps since the reference go on counting, so counters become those since r; else they become 0.
    """

    init: Callable[[FoldConfig], State]
    apply: Callable[[FoldConfig, State, FoldInputs, Key], tuple[np.ndarray, State, Any]]
    keeps_tail: bool

    def __call__(
        self, local: np.ndarray, update: np.ndarray, reference: np.ndarray | None = None, alpha: float = 0.0
    ) -> np.ndarray:
        """Fold without a state: theta (size,) after ``update`` is absorbed."""
        config = FoldConfig(alpha)
        return self.apply(config, self.init(config), FoldInputs(local, update, reference), Key(0))[0]


class CodecInputs(NamedTuple):
    """``values`` (size,) to code, or a payload to decode, and the ``base`` (size,) that both ends hold."""

    values: Any
    base: np.ndarray | None
    out: np.ndarray | None = None


class Codec(NamedTuple):
    """Slot Codec: ``code`` and ``uncode``, each ``(config, state, CodecInputs, key) -> (output, state, info)``.

    Attributes
    ----------
    init, code, uncode : functions
        First state of the sender, values to payload, payload to values.
    dtype : numpy dtype
        Of the payload's elements, one per parameter.
    needs_base : bool
        Codes the difference to the base version.
    needs_acknowledgement : bool
        Keeps a residual that only an acknowledgement may clear.
    """

    init: Callable[[Any], State]
    code: Callable[[Any, State, CodecInputs, Key], tuple[np.ndarray, State, Any]]
    uncode: Callable[[Any, State, CodecInputs, Key], tuple[np.ndarray, State, Any]]
    dtype: np.dtype[Any]
    needs_base: bool
    needs_acknowledgement: bool = False

    def encode(self, values: np.ndarray, base: np.ndarray | None, out: np.ndarray | None = None) -> np.ndarray:
        """Payload (size,) for ``values`` (size,), without a state; never a view of ``values``."""
        return self.code((), self.init(()), CodecInputs(values, base, out), Key(0))[0]

    def decode(self, payload: Any, base: np.ndarray | None, out: np.ndarray | None = None) -> np.ndarray:
        """Values (size,), float32, of a payload (array or any buffer), without a state.

        Raises
        ------
        ValueError
            The payload's size does not fit the base.
        """
        return self.uncode((), self.init(()), CodecInputs(payload, base, out), Key(0))[0]

    def nbytes(self, size: int) -> int:
        """Bytes of the payload of ``size`` parameters."""
        return size * self.dtype.itemsize
