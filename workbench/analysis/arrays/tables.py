"""The tape's tables as plain numpy columns: what every analysis reads, whatever it comes from.

`workbench.analysis.from_records.tables` makes them from records, `workbench.analysis.from_tape.tables_of` from a
tape; names, units and fill values are those of `workbench.tape.schema`, except that ``reason`` holds words and
``details`` holds, by event, what an event has beyond its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.protocol.records import FIRST_LEARNER, Kind
from workbench.tape.origin import origin_ns

Array = np.ndarray[Any, Any]
Columns = Mapping[str, Array]
Tables = Mapping[str, Columns]

NS = 1e-9
"""Seconds in a nanosecond."""


def events_of(tables: Tables, *kinds: Kind) -> Array:
    """Indices into ``events`` of the given kinds, in journal order."""
    kind = tables["events"]["kind"]
    return np.flatnonzero(kind == kinds[0] if len(kinds) == 1 else np.isin(kind, kinds))


def details_of(tables: Tables, *kinds: Kind) -> dict[int, dict[str, Any]]:
    """Details left over of the events of the given kinds, by event."""
    details = tables["details"]
    wanted = np.isin(details["event"], events_of(tables, *kinds))
    return dict(zip(details["event"][wanted].tolist(), details["detail"][wanted].tolist(), strict=True))


def learner_count(tables: Tables) -> int:
    """Learners that any event names."""
    events = tables["events"]
    highest = max(int(events["process"].max(initial=-1)), int(events["peer"].max(initial=-1)))
    return max(0, highest - FIRST_LEARNER + 1)


def fragment_count(tables: Tables) -> int:
    """Fragments that any event names."""
    return int(tables["events"]["fragment"].max(initial=-1)) + 1


def run_span(tables: Tables) -> tuple[int, int]:
    """From the start of rounds to the close of the run [ns]; to the last event while it is open.

    For a run without a start of rounds see `workbench.tape.origin.origin_ns`.  It is closed when the learners are told
    to leave, after the last merge: the wait for their farewells is no time of the run.
    """
    time_ns = tables["events"]["time_ns"]
    if not len(time_ns):
        return 0, 0
    ended = events_of(tables, Kind.RUN_ENDED)
    last = _told_to_leave(tables, int(ended[-1])) if len(ended) else int(time_ns.max())
    return origin_ns(tables["events"]["kind"], time_ns), last


def since_began(tables: Tables, time_ns: Any) -> Any:
    """Points in time [ns of a process's clock] as seconds from the start of rounds: the one origin that people read."""
    return (time_ns - run_span(tables)[0]) * NS


def _told_to_leave(tables: Tables, ended: int) -> int:
    """When the end of the run began: rounds in flight were given up, or the first learner left; never after its end."""
    events = tables["events"]
    signs = events_of(tables, Kind.ROUND_ABORTED, Kind.LEARNER_LOST)
    signs = signs[np.isin(events["reason"][signs].astype(str), ("run_ended", "ended"))]
    merged = events["time_ns"][events_of(tables, Kind.MERGE_COMMITTED, Kind.MERGED)]
    began = int(events["time_ns"][signs].min(initial=events["time_ns"][ended]))
    return max(began, int(merged.max(initial=0)))


def weights_of(tables: Tables, sizes: Any = None) -> Array:
    """Share of each fragment in the model, (fragment,); equal where the sizes are not given."""
    given = np.asarray(sizes if sizes is not None else np.ones(max(1, fragment_count(tables))), float)
    return given / given.sum()
