"""Processes of learners that ended by themselves or by a hand from outside: no fault of the workbench tells of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from workbench.config import ConfigError
from workbench.protocol.records import Kind, Record, learner_of
from workbench.replay.counterfactual.by_hand import by_hand
from workbench.replay.counterfactual.parent import Parent

SECOND = 10**9
SHOWN = 8
"""Ends that an error names."""
END = "end"
"""What they are called by."""


class Ended(NamedTuple):
    """A learner's process that ended without a fault, and when the next of it was started (-1: never).

    ``event`` is the first record that tells of it, of ``first_ns``; ``began_ns`` is the start of rounds.
    """

    learner: int
    time_ns: int
    how: str
    again_ns: int
    event: int
    first_ns: int
    began_ns: int

    @property
    def name(self) -> str:
        """As people call it."""
        return f"end of L{self.learner}'s process at {(self.first_ns - self.began_ns) / SECOND:.2f} s"


def ends_of(parent: Parent, killed: Collection[tuple[int, int]]) -> list[Ended]:
    """Learner processes that ended in the middle of the run without a fault that the tape knows.

    ``killed`` are (learner, time) of those faults that end a process.
    """
    found = []
    for event, r in enumerate(parent.records):
        learner = learner_of(r.peer)
        if r.kind != Kind.PROCESS_ENDED or learner < 0 or r.reason == "exit 0":
            continue
        if any(m == learner and 0 <= r.time_ns - at < 2 * SECOND for m, at in killed):
            continue
        later = (x for x in parent.records[event:] if x.kind == Kind.PROCESS_STARTED and x.peer == r.peer)
        again = next((x.time_ns for x in later), -1)
        found.append(Ended(learner, r.time_ns, r.reason, again, *_told_first(parent, r), parent.began_ns))
    others = by_hand(parent.records)
    for p in others:
        after = (q.began_ns for q in others if q.learner == p.learner and q.number > p.number)
        if p.lost_ns >= 0:
            again = next(after, -1)
            found.append(Ended(p.learner, p.lost_ns, p.how, again, p.lost_event, p.lost_ns, parent.began_ns))
    return found


def _told_first(parent: Parent, ended: Record) -> tuple[int, int]:
    """The first record of an end (event, time): the syncer may see it before the supervisor does."""
    signs = (
        (r.time_ns, event)
        for event, r in enumerate(parent.records)
        if r.kind in (Kind.PROCESS_ENDED, Kind.LEARNER_LOST)
        and r.peer == ended.peer
        and abs(r.time_ns - ended.time_ns) < 2 * SECOND
    )
    time_ns, event = min(signs)
    return event, time_ns


def ends_without(ends: Sequence[Ended], without: Sequence[int | str]) -> list[Ended]:
    """The ends of processes that are to be left out: all (``end``), or those of a learner (``end:2``).

    Raises
    ------
    ConfigError
        No process of the tape ended so.
    """
    found: list[Ended] = []
    for name in without:
        kind, _, learner = str(name).partition(":")
        if kind != END:
            continue
        mine = [e for e in ends if not learner or learner.lstrip("L") == str(e.learner)]
        if not mine:
            known = "; ".join(e.name for e in ends[:SHOWN]) or "none"
            raise ConfigError(
                f"without = {name!r}: no process of a learner ended so without a fault; the tape has {known}"
            )
        found += [e for e in mine if e not in found]
    return found
