"""The one origin of the times that people read."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.protocol.records import Kind


def origin_ns(kinds: np.ndarray[Any, Any], times: np.ndarray[Any, Any]) -> int:
    """Start of rounds [ns of a process's clock]; before it the first joining of a learner, or the first event.

    Parameters
    ----------
    kinds, times : ndarray (event,)
        Of all events, in the order of the journal; 0 without any.
    """
    for kind in (Kind.ROUNDS_BEGAN, Kind.LEARNER_JOINED):
        found = np.flatnonzero(kinds == kind)
        if len(found):
            return int(times[found[0]])
    return int(times[0]) if len(times) else 0
