"""One merge: contributions of several learners to a fragment, then the outer step.

Sums run by learner, ascending; nothing depends on the order of arrival.  A tensor is merged and stepped piece by piece
where the rule is elementwise, so that the outer gradient and the digests read from the cache, not from memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xxhash

from workbench.algorithms.aggregators import AGGREGATORS
from workbench.algorithms.compiled import addresses
from workbench.algorithms.flush import flush_to_zero
from workbench.algorithms.fragment_slots import outer_digest
from workbench.algorithms.fragments import FragmentLayout
from workbench.algorithms.outer import OUTER_OPTIMIZERS
from workbench.algorithms.slots import (
    Aggregator,
    AggregatorInputs,
    Geometry,
    Key,
    OuterConfig,
    OuterGradient,
    OuterInputs,
)

PIECE = 131072
"""Elements merged and stepped at a time; part of the canonical form, since sums of pieces are added in order."""

_CANCELLED = 1e-12


class MergeSettings(NamedTuple):
    """Arithmetic settings of a round, in the words of the configuration.

    Attributes
    ----------
    merge, outer : str
        Keys of `AGGREGATORS` and `OUTER_OPTIMIZERS`.
    outer_rate, outer_momentum : float
        eta and mu.
    anchor : str
        ``current`` or ``base``.
    seed : int
        Seed of the run, for rules that draw.
    """

    merge: str = "rda"
    outer: str = "nesterov"
    outer_rate: float = 0.5
    outer_momentum: float = 0.5
    anchor: str = "current"
    seed: int = 0


class MergeInfo(NamedTuple):
    """What a merge did; entry i of the tuples belongs to learner ``used[i]``.

    Attributes
    ----------
    digest, outer_digest : int
        xxh3-64 of the new Theta's bytes; of the new outer state (`outer_digest`).
    norm : float
        ||Delta|| over the fragment.
    norms : tuple of float
        ||v_m|| over the fragment.
    cosines : tuple of float
        Of v_m to the weighted sum of the other contributions, sum over k != m of w_k v_k, over the fragment; 0 where
        there is no other or either is zero.
    used : tuple of int
        Learners with a weight above 0, ascending.  Empty: nothing was merged and nothing written.
    """

    digest: int
    outer_digest: int
    norm: float
    norms: tuple[float, ...]
    cosines: tuple[float, ...]
    used: tuple[int, ...]


class MergeJob(NamedTuple):
    """Everything that one merge reads and writes.

    Attributes
    ----------
    layout : FragmentLayout
    settings : MergeSettings
    key : Key
    learners, ages : tuple of int, shape (learner,)
        Ascending, and versions between each base and this merge.
    anchors, values : tuple of float32 arrays (size,), shape (learner,)
    weights : float64 array, shape (learner,)
        Above 0.
    theta, state, steps : float32 arrays (size,) and (vector, size), int
        Before.
    theta_out, state_out : float32 arrays (size,) and (vector, size)
        After; overlap nothing else.
    """

    layout: FragmentLayout
    settings: MergeSettings
    key: Key
    learners: tuple[int, ...]
    ages: tuple[int, ...]
    anchors: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]
    weights: np.ndarray
    theta: np.ndarray
    state: np.ndarray
    steps: int
    theta_out: np.ndarray
    state_out: np.ndarray


def merge_fragment(job: MergeJob, scratch: np.ndarray, digests: bool = True) -> MergeInfo:
    """Merge and step a fragment.

    Parameters
    ----------
    job : MergeJob
    scratch : float32 array
        At least `scratch_size` long.
    digests : bool
        Without them both digests of the result are those of nothing.

    Returns
    -------
    MergeInfo
    """
    anchors, values = addresses(job.anchors), addresses(job.values)
    total, shares = _Totals(job, digests), shares_of(job.weights)
    with flush_to_zero(), np.errstate(all="ignore"):
        for low, high, rule in _pieces(job.layout, AGGREGATORS[job.settings.merge]):
            inputs = AggregatorInputs(anchors, values, shares, low, high, scratch[: high - low])
            gradient, _, geometry = rule.apply((), rule.init(()), inputs, job.key)
            _step(job, low, high, gradient)
            total.add(low, high, geometry)
        return total.info()


def shares_of(weights: np.ndarray) -> np.ndarray:
    """Weights (learner,) over their sum, which is rounded once."""
    return weights / math.fsum(weights.tolist())


def scratch_size(layout: FragmentLayout) -> int:
    """Elements of scratch that merging a fragment of this layout needs."""
    return max(high - low for low, high in zip(layout.offsets, layout.offsets[1:], strict=False))


def _pieces(layout: FragmentLayout, rule: Aggregator) -> Iterator[tuple[int, int, Aggregator]]:
    """Ranges to merge at a time, with the rule of their tensor."""
    for low, high, kind in zip(layout.offsets, layout.offsets[1:], layout.kinds, strict=False):
        own = AGGREGATORS["mean"] if kind in rule.direct_kinds else rule
        length = PIECE if own.elementwise else max(high - low, 1)
        for start in range(low, high, length):
            yield start, min(start + length, high), own


def _step(job: MergeJob, low: int, high: int, gradient: OuterGradient) -> None:
    """Outer step on [low, high), piece by piece."""
    rule, config = (
        OUTER_OPTIMIZERS[job.settings.outer],
        OuterConfig(job.settings.outer_rate, job.settings.outer_momentum),
    )
    for start in range(low, high, PIECE):
        end = min(start + PIECE, high)
        inputs = OuterInputs(
            job.theta[start:end],
            OuterGradient(gradient.direction[start - low : end - low], gradient.factor),
            job.theta_out[start:end],
            job.state_out[:, start:end],
            job.steps,
            job.ages,
        )
        rule.apply(config, job.state[:, start:end], inputs, job.key)


class _Totals:
    """Sums and digests over the pieces of a fragment, in order."""

    def __init__(self, job: MergeJob, digests: bool) -> None:
        self._job = job
        self._digests = digests
        self._theta = xxhash.xxh3_64()
        self._state = [xxhash.xxh3_64() for _ in job.state_out]
        self._squares = np.zeros(len(job.learners))
        self._dots = np.zeros(len(job.learners))
        self._average = 0.0
        self._merged = 0.0

    def add(self, low: int, high: int, geometry: Geometry) -> None:
        if self._digests:
            self._theta.update(self._job.theta_out[low:high])
            for hasher, row in zip(self._state, self._job.state_out, strict=True):
                hasher.update(row[low:high])
        self._squares += geometry.squares
        self._dots += geometry.dots
        self._average += geometry.average
        self._merged += geometry.merged

    def info(self) -> MergeInfo:
        job = self._job
        rows = [hasher.intdigest() for hasher in self._state]
        return MergeInfo(
            digest=self._theta.intdigest(),
            outer_digest=outer_digest(job.settings.outer, job.steps + 1, rows),
            norm=math.sqrt(self._merged),
            norms=tuple(math.sqrt(square) for square in self._squares.tolist()),
            cosines=cosines(job.weights.tolist(), self._squares.tolist(), self._dots.tolist(), self._average),
            used=job.learners,
        )


def cosines(weights: list[float], squares: list[float], dots: list[float], average: float) -> tuple[float, ...]:
    """Cosine of each v_m to the weighted sum of the others, from sums over the elements.

    With s = sum w v / sum w and a = w_m / sum w, the others are r = s - a v_m:
    <v_m, r> = <v_m, s> - a ||v_m||^2 and ||r||^2 = ||s||^2 - 2 a <v_m, s> + a^2 ||v_m||^2.

    Parameters
    ----------
    weights, squares, dots : list of float, shape (learner,)
        w, ||v_m||^2, <v_m, s>.
    average : float
        ||s||^2.
    """
    whole = math.fsum(weights)
    result = []
    for weight, square, dot in zip(weights, squares, dots, strict=True):
        share = weight / whole
        own = share * share * square
        rest = average - 2 * share * dot + own
        if len(weights) < 2 or square <= 0 or rest <= _CANCELLED * max(own, average):
            result.append(0.0)
        else:
            cosine = (dot - share * square) / math.sqrt(square) / math.sqrt(rest)
            result.append(max(-1.0, min(1.0, cosine)) if math.isfinite(cosine) else math.nan)
    return tuple(result)
