"""When the syncer itself stood still."""

from __future__ import annotations

import numpy as np

from workbench.analysis.arrays.spans import union
from workbench.analysis.arrays.tables import NS, Array, Tables, events_of
from workbench.protocol.records import Kind


def self_stops(tables: Tables) -> Array:
    """Spans in which the syncer itself stood still (stopped, or its machine was): woken over 0.5 s late [ns]."""
    events = tables["events"]
    at = events_of(tables, Kind.SELF_STOPPED)
    end = events["time_ns"][at]
    return union(np.stack([end - (events["value"][at] / NS).astype(np.int64), end], 1))
