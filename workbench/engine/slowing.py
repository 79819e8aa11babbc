"""The fault ``slow`` on a real process: the training thread sleeps after a step."""

from __future__ import annotations

import time
from collections.abc import Callable

LOOK_EVERY_S = 0.05
"""A sleeper looks so often whether it still has to sleep."""


def stretch(began_ns: int, factor: Callable[[], float], in_a_hurry: Callable[[], bool]) -> int:
    """Make a step last ``factor()`` times as long as it took.

    Parameters
    ----------
    began_ns : int
        When it began [ns of `time.monotonic_ns`]; it ends now.
    factor : callable
        How many times as long; looked at again while sleeping, since the fault may end.
    in_a_hurry : callable
        Whether the process is about to leave.

    Returns
    -------
    int
        The time that was added [ns].
    """
    if factor() <= 1.0:
        return 0
    ended_ns = time.monotonic_ns()
    while not in_a_hurry():
        left_s = (ended_ns - began_ns) * (factor() - 1.0) / 1e9 - (time.monotonic_ns() - ended_ns) / 1e9
        if left_s <= 0.0:
            break
        time.sleep(min(left_s, LOOK_EVERY_S))
    return time.monotonic_ns() - ended_ns
