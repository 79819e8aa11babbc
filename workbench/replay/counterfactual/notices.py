"""When NOTICEs reached their learners: a tape has no record of it, but one that ended a wait has left a trace."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from workbench.protocol.records import Kind, Record, learner_of


class Noticed(NamedTuple):
    """A learner heard that a round was closed without an update: sent and come [ns of the syncer]."""

    learner: int
    round: int
    sent: int
    came: int


def noticed(records: Sequence[Record], offsets: Mapping[int, int]) -> Iterator[Noticed]:
    """Those NOTICEs that freed a learner which had run as far ahead as it may.

    The last that was sent before is meant, unless a PULL that was sent behind it on the same channel had come already:
    then something else has freed the learner.

    Parameters
    ----------
    records : sequence of Record
    offsets : mapping of learner to int
        To the syncer's clock.
    """
    closed = [(r.time_ns, r.round) for r in records if r.kind in (Kind.ROUND_SKIPPED, Kind.ROUND_ABORTED)]
    pulls = _pulls(records, offsets)
    boundary: dict[int, int] = {}
    folded: dict[int, int] = {}
    for r in records:
        learner = learner_of(r.process)
        if r.kind == Kind.UPDATE_FOLDED:
            folded[learner] = r.time_ns
        elif r.kind == Kind.STEP_ENDED and r.detail["waited_ns"] and learner in boundary:
            freed = boundary[learner] + r.detail["waited_ns"] + offsets[learner]
            at = bisect_right(closed, freed, key=itemgetter(0)) - 1
            by_update = folded.get(learner, -1) > boundary[learner]
            if at >= 0 and not by_update and not _overtaken(pulls[learner], closed[at][0], freed):
                yield Noticed(learner, closed[at][1], closed[at][0], freed)
        if r.kind in (Kind.STEP_ENDED, Kind.STATE_ADOPTED, Kind.RESTORED):
            boundary[learner] = r.time_ns


def _pulls(records: Sequence[Record], offsets: Mapping[int, int]) -> dict[int, list[tuple[int, int]]]:
    """When PULLs were sent to each learner, and when they had come, in order."""
    sent = {(r.process, r.seq): r.time_ns for r in records if r.kind == Kind.PULL_SENT}
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for r in records:
        if r.kind in (Kind.FRAGMENT_CAPTURED, Kind.PULL_REFUSED) and r.cause in sent:
            learner = learner_of(r.process)
            found[learner].append((sent[r.cause], r.time_ns + offsets[learner]))
    return found


def _overtaken(pulls: list[tuple[int, int]], sent: int, freed: int) -> bool:
    """Whether a PULL of that time or later had come before a learner was freed."""
    behind = bisect_left(pulls, sent, key=itemgetter(0))
    return behind < len(pulls) and pulls[behind][1] < freed
