"""A moving average of a line, drawn before the line itself: without the pull of its first values, off by default."""

from __future__ import annotations

import math

import numpy as np

from workbench.analysis.arrays.tables import Array
from workbench.config import ConfigError

FAINT = 0.35
"""How strongly a line is drawn behind its own average."""


class Smoother:
    """The average of values that come one by one; see `smoothed`.

    Parameters
    ----------
    smooth : float
        Weight of what was, from 0 to below 1.
    """

    def __init__(self, smooth: float) -> None:
        check(smooth)
        self.smooth, self._total, self._weight = smooth, 0.0, 0.0

    def take(self, value: float) -> float:
        """The average with one value more; NaN before the first finite one."""
        if math.isfinite(value):
            self._total = self.smooth * self._total + (1 - self.smooth) * value
            self._weight = self.smooth * self._weight + (1 - self.smooth)
        return self._total / self._weight if self._weight > 0 else math.nan


def smoothed(values: Array, smooth: float) -> Array:
    """Exponential moving average in which every value has the weight that it would have had from the start.

    ``m_n = sum_i smooth^(n - i) v_i / sum_i smooth^(n - i)`` over the finite values up to n, so that a series of equal
    values stays as it is (the correction of Adam, Kingma and Ba 2015, section 3).

    Parameters
    ----------
    values : ndarray (value,)
        What is not finite is passed over.
    smooth : float
        Weight of what was, from 0 (the values themselves) to below 1.

    Raises
    ------
    ConfigError
        For another ``smooth``.

    Examples
    --------
    >>> smoothed(np.array([2.0, 2.0, 2.0]), 0.9).round(12).tolist(), smoothed(np.array([0.0, 3.0]), 0.5).tolist()
    ([2.0, 2.0, 2.0], [0.0, 2.0])
    """
    average = Smoother(smooth)
    return np.array([average.take(value) for value in np.asarray(values, float).tolist()], float)


def check(smooth: float) -> None:
    """Raise unless a line can be smoothed so much.

    Raises
    ------
    ConfigError
    """
    if not 0 <= smooth < 1:
        raise ConfigError(f"smooth = {smooth!r}; allowed: 0 (as it is) to below 1, as in smooth=0.9")
