"""Intervals over seeds: Student's t on values, or on logarithms for ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.analysis.arrays.tables import Array


class Interval(NamedTuple):
    """A difference of means, or a ratio of geometric means, with its interval.

    Attributes
    ----------
    middle, low, high : float
        NaN where they cannot be told (no run, or for the interval fewer than two on either side).
    method : str
        ``paired t``, ``Welch t`` or ``none``.
    """

    middle: float
    low: float
    high: float
    method: str


def mean_difference(
    a: Sequence[float] | Array, b: Sequence[float] | Array, *, paired: bool, level: float = 0.95
) -> Interval:
    """Difference mean(a) - mean(b) over seeds, with a t-interval.

    Paired (the same seeds on both sides, in the same order): d_i = a_i - b_i, mean(d) ± t_{n-1} s_d / sqrt(n).  Else
    Welch (1947): ± t_v sqrt(s_a²/n_a + s_b²/n_b) with Welch-Satterthwaite degrees of freedom v.

    Parameters
    ----------
    a, b : sequence of float
    paired : bool
    level : float
        Coverage of the interval.

    Examples
    --------
    >>> mean_difference([1.0, 2.0], [2.0, 3.0], paired=True)
    Interval(middle=-1.0, low=-1.0, high=-1.0, method='paired t')
    """
    one, other = np.asarray(a, float), np.asarray(b, float)
    if not len(one) or not len(other):
        return Interval(math.nan, math.nan, math.nan, "none")
    middle = float(one.mean() - other.mean())
    if paired and len(one) == len(other) >= 2:
        spread, degrees, method = _error(one - other), float(len(one) - 1), "paired t"
    elif len(one) >= 2 and len(other) >= 2:
        (spread, degrees), method = _welch(_error(one), len(one), _error(other), len(other)), "Welch t"
    else:
        return Interval(middle, math.nan, math.nan, "none")
    half = t_quantile(degrees, level) * spread if spread else 0.0
    return Interval(middle, middle - half, middle + half, method)


def log_ratio(a: Sequence[float] | Array, b: Sequence[float] | Array, *, paired: bool, level: float = 0.95) -> Interval:
    """Ratio of the geometric means of positive numbers over seeds: `mean_difference` of their logarithms.

    The logarithm makes the interval of b / a the reciprocal one.

    Examples
    --------
    >>> found = log_ratio([1.0, 2.0], [2.0, 4.0], paired=True)
    >>> round(found.middle, 3), round(found.low, 3), round(found.high, 3)
    (0.5, 0.5, 0.5)
    """
    found = mean_difference(np.log(np.asarray(a, float)), np.log(np.asarray(b, float)), paired=paired, level=level)
    middle, low, high = (math.exp(value) for value in found[:3])
    return Interval(middle, low, high, found.method)


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
