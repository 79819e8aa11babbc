"""A merge request as rows, one per contribution that counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class MergeRow(NamedTuple):
    """One contribution: parameters (size,) as decoded, weight above 0, version of its base."""

    learner: int
    values: np.ndarray
    weight: float
    base_version: int


def merge_rows(
    p: int,
    learners: Sequence[int],
    contributions: Sequence[np.ndarray],
    weights: Sequence[float],
    base_versions: Sequence[int],
) -> list[MergeRow]:
    """Contributions with a weight above 0, by learner, ascending.

    Raises
    ------
    ValueError
        If lengths differ, a learner comes twice, or a weight is below 0 or not finite.
    """
    lengths = (len(learners), len(contributions), len(weights), len(base_versions))
    if len(set(lengths)) != 1:
        raise ValueError(
            f"learners, contributions, weights, base_versions of fragment {p} are {lengths} long; expected one length"
        )
    if len(set(learners)) != len(learners):
        raise ValueError(f"learners {list(learners)} of fragment {p} hold one twice; expected each once")
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights):
        raise ValueError(f"weights {list(weights)} of fragment {p} must be finite and at least 0")
    rows = map(MergeRow, learners, contributions, weights, base_versions)
    return sorted((row for row in rows if row.weight > 0), key=lambda row: row.learner)
