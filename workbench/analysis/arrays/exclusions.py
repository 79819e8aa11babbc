"""Why a learner is not in a merge: of each (merge, learner) exactly one thing is true."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from workbench.analysis.arrays.participation import Participation, windows
from workbench.analysis.arrays.presence import Presence, faults, presences
from workbench.analysis.arrays.spans import inside, touches
from workbench.analysis.arrays.tables import Array, Tables, details_of, events_of
from workbench.protocol.records import FIRST_LEARNER, Kind, process_of

INCLUDED, UNEXPECTED_BUT_INCLUDED = "included", "included_unexpected"
ABSENCES = ("down", "fault", "disconnected", "healing")
"""Why a learner was not expected: no process; an injected fault acted on it; no connection; not healed yet."""
UNANSWERED, UNKNOWN = "unanswered", "unknown"

Key = tuple[int, int, int]
"""(epoch, round, learner)."""


def standings(tables: Tables, found: Participation) -> Array:
    """What was true of every learner at every merge.

    Returns
    -------
    ndarray (merge, learner) of str
        ``included``; ``included_unexpected`` (a contribution of a learner that was not expected); one of `ABSENCES`
        (not expected, not included); else the reason for which an expected learner was left out: that of its dropped
        FRAGMENT (``late``, ``pull_limit``, …), of its refusal, ``unanswered`` (pulled, nothing came), that which
        GRACE_ENDED names (``not_fresh``, ``base_behind``, …), ``unknown`` where no record tells.
    """
    standing = np.full(found.included.shape, UNKNOWN, object)
    standing[found.included] = np.where(found.expected, INCLUDED, UNEXPECTED_BUT_INCLUDED)[found.included]
    _name_absences(tables, found, standing)
    reasons = _Reasons(tables)
    epochs, rounds = (tables["merges"][name].tolist() for name in ("epoch", "round"))
    for merge, learner in zip(*(axis.tolist() for axis in np.nonzero(found.expected & ~found.included)), strict=True):
        standing[merge, learner] = reasons.of((epochs[merge], rounds[merge], learner))
    return standing


def _name_absences(tables: Tables, found: Participation, standing: Array) -> None:
    opened, closed = windows(tables)
    merged_ns = tables["events"]["time_ns"][tables["merges"]["event"]]
    struck = faults(tables)
    for learner, presence in enumerate(presences(tables)):
        rows = np.flatnonzero(~found.expected[:, learner] & ~found.included[:, learner])
        faulty = touches(struck.spans(process_of(learner)), opened[rows], closed[rows])
        standing[rows, learner] = _absence(presence, merged_ns[rows], faulty)


def _absence(presence: Presence, time_ns: Array, faulty: Array) -> Array:
    """The first of `ABSENCES` that holds; who came back within the round was healing at its beginning."""
    down, apart = (~inside(spans, time_ns) for spans in (presence.alive, presence.connected))
    return np.select([down, faulty, apart], [ABSENCES[0], ABSENCES[1], ABSENCES[2]], ABSENCES[3]).astype(object)


class _Reasons:
    """Records that tell why an expected learner was left out, the later ones first."""

    def __init__(self, tables: Tables) -> None:
        self._dropped = _words(tables, Kind.FRAGMENT_DROPPED)
        self._refused = _words(tables, Kind.REFUSAL_ARRIVED)
        self._pulled = _words(tables, Kind.PULL_SENT)
        self._left_out: dict[Key, str] = {}
        events = tables["events"]
        for event, detail in details_of(tables, Kind.GRACE_ENDED).items():
            named: dict[Any, str] = detail.get("left_out", {})
            for learner, reason in named.items():
                key = int(events["epoch"][event]), int(events["round"][event]), int(learner)
                self._left_out[key] = str(reason)

    def of(self, key: Key) -> str:
        """Why; an answer outweighs a pull without one, and that what was said before."""
        if key in self._dropped or key in self._refused:
            return self._dropped.get(key) or self._refused[key]
        if key in self._pulled:
            return UNANSWERED
        return self._left_out.get(key, UNKNOWN)


def _words(tables: Tables, kind: Kind) -> dict[Key, str]:
    """Reason of the last record of a kind for each learner and round."""
    events, at = tables["events"], events_of(tables, kind)
    columns = (events[name][at].tolist() for name in ("epoch", "round", "peer", "reason"))
    return {
        (epoch, round_, peer - FIRST_LEARNER): reason
        for epoch, round_, peer, reason in zip(*columns, strict=True)
        if reason != "duplicate"
    }


def counts(standing: Array) -> list[dict[str, int]]:
    """How often each thing was true of each learner, by learner; each adds up to the number of merges."""
    return [dict(Counter(standing[:, learner].tolist()).most_common()) for learner in range(standing.shape[1])]
