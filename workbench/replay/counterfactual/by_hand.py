"""Processes of learners that no supervisor started: what the syncer has seen of them is all that a tape knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workbench.protocol.records import Kind, Record, learner_of

JOINING_NS = 5_000_000
"""What a process that nobody saw starting has needed to join."""


class ByHand(NamedTuple):
    """A process: its number, when it joined first; when [ns], at which event and why it was lost for good (-1: not)."""

    learner: int
    number: int
    joined_ns: int
    lost_ns: int
    lost_event: int
    how: str

    @property
    def began_ns(self) -> int:
        """When it may have been started."""
        return max(0, self.joined_ns - JOINING_NS)


def by_hand(records: Sequence[Record]) -> list[ByHand]:
    """All processes of a tape that joined and that no supervisor started, in order."""
    started = {(r.peer, int(r.value)) for r in records if r.kind == Kind.PROCESS_STARTED}
    found: dict[tuple[int, int], ByHand] = {}
    present: dict[int, tuple[int, int]] = {}
    for event, r in enumerate(records):
        if r.kind == Kind.LEARNER_JOINED and (r.peer, int(r.value)) not in started:
            key = present[r.peer] = r.peer, int(r.value)
            first = found.get(key, ByHand(learner_of(r.peer), int(r.value), r.time_ns, -1, -1, ""))
            found[key] = first._replace(lost_ns=-1, lost_event=-1, how="")
        elif r.kind == Kind.LEARNER_LOST and r.peer in present and r.reason != "ended":
            key = present[r.peer]
            found[key] = found[key]._replace(lost_ns=r.time_ns, lost_event=event, how=r.reason)
    return list(found.values())
