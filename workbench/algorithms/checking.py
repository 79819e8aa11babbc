"""What the guards see of a contribution when it arrives."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from workbench.algorithms.compiled import addresses, kernel, vector
from workbench.algorithms.digest import digest
from workbench.algorithms.flush import flush_to_zero

BLOCK = 512


class ContributionCheck(NamedTuple):
    """What the guards see of a contribution.

    Attributes
    ----------
    finite : bool
        No NaN and no infinity.
    digest : int
        xxh3-64 of its bytes.
    norm : float
        ||Theta_p - theta||, to the current version; NaN or infinite if not finite.
    """

    finite: bool
    digest: int
    norm: float


def check_contribution(theta: np.ndarray, values: np.ndarray) -> ContributionCheck:
    """Look at a decoded contribution (size,) to a fragment whose current version is ``theta`` (size,)."""
    with flush_to_zero():
        square = difference_square(*addresses([theta, values]), values.size)
    return ContributionCheck(math.isfinite(square), digest(values), math.sqrt(square) if square >= 0 else square)


@kernel
def difference_square(anchor, value, size):  # type: ignore[no-untyped-def]
    """||anchor - value||^2 of two vectors given by address, in float64 throughout."""
    lanes = np.zeros(BLOCK)
    for start in range(0, size, BLOCK):
        count = min(BLOCK, size - start)
        a = vector(anchor, start, count)
        x = vector(value, start, count)
        for j in range(count):
            v = np.float64(a[j]) - np.float64(x[j])
            lanes[j] += v * v
    return _lanes_total(lanes)


@kernel
def _lanes_total(lanes):  # type: ignore[no-untyped-def]
    total = 0.0
    for lane in lanes:
        total += lane
    return total
