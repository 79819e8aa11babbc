"""Short ways to call a merge rule, and the syncer's arithmetic, on small arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.algorithms.aggregators import AGGREGATORS
from workbench.algorithms.compiled import addresses
from workbench.algorithms.flush import flush_to_zero
from workbench.algorithms.fragments import TensorSpec, fragment
from workbench.algorithms.merging import shares_of
from workbench.algorithms.slots import AggregatorInputs, Geometry, Key
from workbench.algorithms.syncer_arithmetic import MergeInfo, MergeSettings, SyncerArithmetic

PLAIN = MergeSettings("mean", "sgd", 1.0, 0.0)
NESTEROV = MergeSettings("rda", "nesterov", 0.5, 0.9)


def combine(rule: str, v: ArrayLike, w: ArrayLike) -> tuple[np.ndarray, Geometry]:
    """Delta (n,) and sums for differences v (learner, n), weights w."""
    v = np.asarray(v, np.float32)
    anchor, values = np.zeros(v.shape[1], np.float32), [np.ascontiguousarray(-row) for row in v]
    inputs = AggregatorInputs(
        anchors=addresses([anchor] * len(values)),
        values=addresses(values),
        shares=shares_of(np.asarray(w, np.float64)),
        low=0,
        high=v.shape[1],
        out=np.full(v.shape[1], np.nan, np.float32),
    )
    member = AGGREGATORS[rule]
    with flush_to_zero(), np.errstate(all="ignore"):
        gradient, _, geometry = member.apply((), member.init(()), inputs, Key(0))
        delta = np.float32(gradient.factor) * gradient.direction
    assert gradient.direction is inputs.out
    return delta, geometry


def syncer(theta: Sequence[np.ndarray], kinds: Sequence[str] | None = None, slot_count: int = 2) -> SyncerArithmetic:
    """Syncer with one tensor per fragment."""
    kinds = kinds or ["matrix"] * len(theta)
    specs = [
        TensorSpec(f"t{p}", (len(x),), "float32", kind, p) for p, (x, kind) in enumerate(zip(theta, kinds, strict=True))
    ]
    flat = [np.asarray(x, np.float32) for x in theta]
    return SyncerArithmetic(fragment(specs, len(flat), "tensor"), flat, slot_count=slot_count)


def random_differences(seed: int, learners: int, size: int) -> np.ndarray:
    """Nearly orthogonal float32 (learner, size) of different lengths."""
    generator = np.random.default_rng(seed)
    return (generator.standard_normal((learners, size)) * generator.uniform(0.5, 2, (learners, 1))).astype(np.float32)


def vectors(seed: int, count: int, size: int) -> list[np.ndarray]:
    """Rows of `random_differences`."""
    return list(random_differences(seed, count, size))


def advance(
    arithmetic: SyncerArithmetic, p: int, values: Any, weights: Any = None, settings: MergeSettings = NESTEROV
) -> MergeInfo:
    """Merge and commit the next version from learners 0, 1, … on the current base."""
    base, count = arithmetic.version(p), len(values)
    info = arithmetic.merge(p, base + 1, range(count), values, weights or [1.0] * count, [base] * count, settings)
    arithmetic.commit(p, base + 1)
    return info
