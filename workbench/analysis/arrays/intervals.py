"""Intervals over seeds: Student's t on values, or on logarithms for ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.analysis.arrays.tables import Array


class Ratio(NamedTuple):
    """A ratio of two geometric means, with its interval.

    Attributes
    ----------
    ratio, low, high : float
        NaN where they cannot be told (no run, or for the interval fewer than two on either side).
    method : str
        ``paired t``, ``Welch t`` or ``none``, each on logarithms.
    """

    ratio: float
    low: float
    high: float
    method: str


def log_ratio(a: Sequence[float] | Array, b: Sequence[float] | Array, *, paired: bool, level: float = 0.95) -> Ratio:
    """Ratio a / b of positive numbers over seeds with a t-interval on its logarithm.

    The logarithm makes the interval of b / a the reciprocal one.  Paired (the same seeds on both sides, in the same
    order): d_i = ln a_i - ln b_i, mean(d) ± t_{n-1} s_d / sqrt(n).  Else Welch (1947): the difference of the means
    ± t_v sqrt(s_a²/n_a + s_b²/n_b) with Welch-Satterthwaite degrees of freedom v.

    Parameters
    ----------
    a, b : sequence of float
        Greater than 0.
    paired : bool
    level : float
        Coverage of the interval.

    Examples
    --------
    >>> found = log_ratio([1.0, 2.0], [2.0, 4.0], paired=True)
    >>> round(found.ratio, 3), round(found.low, 3), round(found.high, 3)
    (0.5, 0.5, 0.5)
    """
    one, other = np.log(np.asarray(a, float)), np.log(np.asarray(b, float))
    if not len(one) or not len(other):
        return Ratio(math.nan, math.nan, math.nan, "none")
    middle = float(one.mean() - other.mean())
    if paired and len(one) == len(other) >= 2:
        spread, degrees, method = _error(one - other), float(len(one) - 1), "paired t"
    elif len(one) >= 2 and len(other) >= 2:
        (spread, degrees), method = _welch(_error(one), len(one), _error(other), len(other)), "Welch t"
    else:
        return Ratio(math.exp(middle), math.nan, math.nan, "none")
    half = t_quantile(degrees, level) * spread if spread else 0.0
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half), method)


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Mean of values over seeds and its t-interval, mean ± t_{n-1} s / sqrt(n); NaN limits below two values."""
    found = np.asarray(values, float)
    if not len(found):
        return math.nan, math.nan, math.nan
    middle = float(found.mean())
    if len(found) < 2:
        return middle, math.nan, math.nan
    half = t_quantile(len(found) - 1, level) * _error(found)
    return middle, middle - half, middle + half


def t_quantile(degrees: float, level: float) -> float:
    """Half-width of a two-sided interval of Student's t with this coverage, in standard errors."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    return float(stdtrit(degrees, 0.5 + level / 2))


def _error(values: Array) -> float:
    """Standard error of the mean; 0 where all values are one, whatever their mean was rounded to."""
    return 0.0 if (values == values[0]).all() else float(values.std(ddof=1) / math.sqrt(len(values)))


def _welch(a: float, n_a: int, b: float, n_b: int) -> tuple[float, float]:
    """Standard error of a difference of means, and its degrees of freedom."""
    total = a * a + b * b
    if not total:
        return 0.0, float(n_a + n_b - 2)
    return math.sqrt(total), total * total / (a**4 / (n_a - 1) + b**4 / (n_b - 1))
