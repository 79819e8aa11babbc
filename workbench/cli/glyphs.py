"""Small drawings for the terminal: bars, sparklines and a curve, from block characters alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

EIGHTHS = " ▏▎▍▌▋▊▉█"
"""A cell filled from the left, by eighths."""
LEVELS = " ▁▂▃▄▅▆▇█"
"""A cell filled from below, by eighths."""
GAP = "·"
"""Where there is no value."""

Values = Sequence[float | None]


def bar(share: float | None, width: int) -> str:
    """Return a bar of a share of ``width`` cells; a share above zero is never invisible.

    Examples
    --------
    >>> bar(0.5, 8)
    '████'
    """
    if share is None or not math.isfinite(share) or share <= 0:
        return ""
    eighths = max(1, round(min(share, 1.0) * width * 8))
    return EIGHTHS[8] * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def sparkline(values: Values, low: float = 0.0, high: float = 1.0) -> str:
    """Return one cell for each value: empty at ``low``, full at ``high``, a dot where there is none.

    A cell above ``low`` is never empty; one that is below ``high`` by half a percent and more is never full.

    Examples
    --------
    >>> sparkline([0.0, 0.5, 1.0, None])
    ' ▄█·'
    """
    return "".join(GAP if value is None else LEVELS[_level(value, low, high)] for value in values)


def _level(value: float, low: float, high: float) -> int:
    if value <= low or high <= low:
        return 0
    if value >= high - 0.005 * (high - low):
        return 8
    return min(7, max(1, round(8 * (value - low) / (high - low))))


def resampled(x: Sequence[float], y: Sequence[float], count: int) -> list[float]:
    """Return ``count`` values of a curve at equal distances of ``x``, on straight lines between its points."""
    if len(x) < 2 or x[-1] <= x[0]:
        return [float(value) for value in y[-1:]] * count
    result, at = [], 0
    for index in range(count):
        wanted = x[0] + (x[-1] - x[0]) * index / max(count - 1, 1)
        while at < len(x) - 2 and x[at + 1] < wanted:
            at += 1
        width = x[at + 1] - x[at]
        part = (wanted - x[at]) / width if width > 0 else 1.0
        result.append(y[at] + min(max(part, 0.0), 1.0) * (y[at + 1] - y[at]))
    return result


def curve(x: Sequence[float], y: Sequence[float], width: int, height: int, ends: tuple[str, str, str]) -> list[str]:
    """Return lines that draw ``y`` over ``x``: filled columns between a scale and an axis.

    Parameters
    ----------
    x, y : sequence of float
        Points, by ascending ``x``; at least one.
    width, height : int
        Cells of the drawing without its scale.
    ends : tuple of str
        What stands under the left end, the middle and the right end of the axis.
    """
    low, high = min(y), max(y)
    columns = [round(_part(value, low, high) * (height * 8 - 1)) + 1 for value in resampled(x, y, width)]
    lines = []
    for row in range(height):
        floor = (height - 1 - row) * 8
        label = f"{high - (high - low) * row / max(height - 1, 1):.2f}" if row in (0, height // 2, height - 1) else ""
        cells = "".join(LEVELS[min(max(column - floor, 0), 8)] for column in columns)
        lines.append(f"{label:>7} ┤{cells.rstrip()}")
    left, middle, right = ends
    space = width - len(left) - len(right)
    return [*lines, f"{'':>7} └{'─' * width}", f"{'':>9}{left}{middle:^{max(space, len(middle))}}{right}"]


def _part(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low) if high > low else 1.0
