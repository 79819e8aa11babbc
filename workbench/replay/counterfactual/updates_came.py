"""When UPDATEs reached their learners: a tape has no record of it, but folds and boundaries leave little room."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from workbench.protocol.records import FIRST_LEARNER, Kind, Record, learner_of

MARGIN_NS = 100_000
"""Boundaries of a simulation may lie a little off: an arrival keeps away from them where there is room."""
FAR = 2**62


@dataclass
class Sending:
    """One UPDATE on its way: it came after ``low``, before ``high``, and as early as it could [ns of the syncer]."""

    learner: int
    fragment: int
    version: int
    seq: int
    sent: int
    low: int
    high: int = FAR
    folded: bool = False
    came: int = -1


def sendings_of(
    records: list[Record], delay_ns: int, offsets: dict[int, int], late: bool
) -> tuple[list[Sending], set[int]]:
    """All UPDATEs of a tape with the time at which each came, and the numbers of those that were folded.

    Parameters
    ----------
    records : list of Record
    delay_ns : int
        Delay of a message that nothing holds up.
    offsets : dict of learner to int
        To the syncer's clock.
    late : bool
        Folds wait until they are due: a boundary passed over says nothing.
    """
    found: dict[int, Sending] = {}
    waiting: dict[tuple[int, int], list[Sending]] = defaultdict(list)
    boundaries: dict[int, tuple[int, int]] = {}
    for r in records:
        learner = learner_of(r.process)
        if r.kind == Kind.UPDATE_SENT:
            made = Sending(learner_of(r.peer), r.fragment, r.version, r.seq, r.time_ns, r.time_ns)
            found[r.seq] = made
            waiting[made.learner, made.fragment].append(made)
        elif r.kind in (Kind.STEP_ENDED, Kind.STATE_ADOPTED, Kind.RESTORED) and r.process >= FIRST_LEARNER:
            if r.kind == Kind.RESTORED or (r.kind == Kind.STATE_ADOPTED and r.reason == "initial"):
                # another process: what the one before has not folded by its last boundary came later, if at all
                _behind([s for key, own in waiting.items() if key[0] == learner for s in own], boundaries)
                waiting = defaultdict(list, {k: [] if k[0] == learner else v for k, v in waiting.items()})
            before = boundaries.get(learner, (-1, -1))[0]  # one that waits folds at once: what came later, came later
            boundaries[learner] = r.time_ns + offsets[learner], before + r.detail.get("waited_ns", 0)
        elif r.kind == Kind.UPDATE_FOLDED and r.cause is not None and r.cause[1] in found:
            _bound(found[r.cause[1]], r.time_ns + offsets[learner], boundaries.get(learner, (-1, -1)), late)
            waiting[learner, r.fragment] = _passed(waiting[learner, r.fragment], found[r.cause[1]], boundaries[learner])
    _behind([sending for own in waiting.values() for sending in own], boundaries)
    _place(list(found.values()), delay_ns)
    return list(found.values()), {s.seq for s in found.values() if s.folded}


def _behind(sendings: list[Sending], boundaries: dict[int, tuple[int, int]]) -> None:
    """What was not folded at a learner's last boundary came behind it."""
    for sending in sendings:
        sending.low = max(sending.low, boundaries.get(sending.learner, (-1, -1))[0])


def _bound(sending: Sending, fold: int, boundary: tuple[int, int], late: bool) -> None:
    """What its fold says: it came between two boundaries, or at that moment to a learner that waited."""
    last, before = boundary
    sending.folded = True
    if fold > last:
        sending.low = sending.high = max(fold, sending.sent)
        return
    sending.low = max(sending.sent, 0 if late else before)
    sending.high = max(last - 1, sending.low)


def _passed(waiting: list[Sending], folded: Sending, boundary: tuple[int, int]) -> list[Sending]:
    """Those before it came too late for the boundaries before, or, of the same version, after it or not at all."""
    left = []
    for sending in waiting:
        if sending is folded:
            continue
        if sending.seq > folded.seq:
            left.append(sending)
        elif sending.version == folded.version:
            sending.low = max(sending.low, folded.high + 1)
        else:
            sending.low = max(sending.low, boundary[1])
    return left


def _place(sendings: list[Sending], delay_ns: int) -> None:
    """As early as each can have come, in the order in which they were sent to each learner."""
    by_learner: dict[int, list[Sending]] = defaultdict(list)
    for s in sendings:
        margin = min(MARGIN_NS, (min(s.high, s.low + 4 * MARGIN_NS) - s.low) // 4)
        s.came = min(max(s.sent + delay_ns, s.low + margin), max(s.high - margin, s.low))
        by_learner[s.learner].append(s)
    for own in by_learner.values():
        for before, s in pairwise(own):
            s.came = min(max(s.came, before.came), s.high)
        for before, s in reversed(list(pairwise(own))):
            before.came = min(before.came, s.came)
