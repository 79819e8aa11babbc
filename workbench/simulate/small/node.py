"""States of the small world: which world, what a state is, and what is read of its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.config import RunConfig

DEAD = -1
NO_LINK = -1
LEARNERS = 2
SYNCER_INDEX = LEARNERS
"""Number of the syncer where moves name a process; learners have their own."""

Move = tuple[str, int]
"""What happens, and to which learner, queue, connection or process."""


@dataclass(frozen=True)
class Small:
    """Which small world, and how far it is searched.

    Attributes
    ----------
    quorum : int
        K.
    crashes, losses : int
        Processes that may be killed, and messages that may be lost, on one path.
    ticks : int
        How often time may pass to the next deadline of a machine on one path.
    steps, merges : int
        Own steps of a learner, and merges, beyond which a path is not followed.
    lead : int or None
        Steps a learner may run ahead.
    grace_s : float
        Length of the grace window [s].
    """

    quorum: int = 1
    crashes: int = 1
    losses: int = 1
    ticks: int = 0
    steps: int = 4
    merges: int = 3
    lead: int | None = None
    grace_s: float = 0.1

    def config(self) -> RunConfig:
        """The run: M = 2, P = 2, H = 2, one round in flight, and no end."""
        return RunConfig(
            learners=LEARNERS, period=2, fragments=2, overlap=1, quorum=self.quorum, grace="fixed", lead=self.lead,
            grace_s=self.grace_s, heartbeat_s=1.0, heartbeat_limit_s=2.0, rounds=10**6, eval_every=0, recovery="fresh",
        )  # fmt: skip


class Node(NamedTuple):
    """One state.  Machines, messages and orders are numbers in the tables of `Machines`.

    Attributes
    ----------
    syncer : int
        `DEAD` while it is down.
    lives, processes : tuple of int, one per learner
        State of the process (`DEAD` while it is down), and how-manieth it is.
    journal : int
    queues : tuple of (code, messages)
        Code = 4 x connection + 2 x direction + channel; connection k of learner m has the number m + M k.
    opened, links : tuple of int, one per learner
        Connections opened so far, and the one that is open.
    news : tuple of tuples
        What processes are yet to hear of: connections made, closed, and exits.
    work : tuple
        The merge or the commit in progress.
    committed : tuple of int, one per fragment
        Version in the current slot.
    pulled : tuple of (round, learner)
        Who was ever pulled in a round that is not merged.
    merged : tuple of int, one per (learner, fragment)
        Own steps that are merged, as bits.
    crashes, losses, ticks : int
        What may still happen.
    """

    syncer: int
    lives: tuple[int, ...]
    processes: tuple[int, ...]
    journal: int
    queues: tuple[tuple[int, tuple[int, ...]], ...]
    opened: tuple[int, ...]
    links: tuple[int, ...]
    news: tuple[tuple[Any, ...], ...]
    work: tuple[Any, ...]
    committed: tuple[int, ...]
    pulled: tuple[tuple[int, int], ...]
    merged: tuple[int, ...]
    crashes: int
    losses: int
    ticks: int


class LifeFacts(NamedTuple):
    """What the driver and the invariants read of a learner."""

    connection: int
    wake_at: int
    step: int
    n: int
    base: tuple[int, ...]


class SyncerFacts(NamedTuple):
    """What the driver and the report read of a syncer."""

    wake_at: int
    merges: int
    rounds: tuple[str, ...]
    view: dict[str, Any]


class JournalFacts(NamedTuple):
    """What the driver and the invariants read of a journal."""

    exits: int
    versions: tuple[int, ...]
    view: dict[str, Any]
