"""The causal order of a tape, from its recorded clocks: built once, then every answer is a few bisections.

Event e of process p, with number seq, is in the causal past of f exactly if ``clock[f, p] >= seq`` and f is not e.  On
one process clocks never fall, so that a past is a prefix of every process and a future a suffix.  Clocks carry more
than the causes that are recorded: whatever message a process heard, METADATA and heartbeats too, counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from workbench.protocol.records import label_of
from workbench.tape.errors import TapeError
from workbench.tape.event_sets import Cut, EventSet, Ints
from workbench.tape.whole import whole

PROGRAM_ORDER, MESSAGE, HEARD = "program order", "message", "heard"
"""How one event follows another: same process; a send that its record names; a message that its clock shows."""


class Link(NamedTuple):
    """An event beside another one, and how they hang together (`PROGRAM_ORDER`, `MESSAGE` or `HEARD`)."""

    event: int
    how: str


class Arrow(NamedTuple):
    """From a cause to what follows from it directly.

    Attributes
    ----------
    cause, effect : int
    how : str
        `PROGRAM_ORDER`, `MESSAGE` or `HEARD`.
    depth : int
        How many such steps the farther end is from the event that was asked for: below 0 in its past.
    """

    cause: int
    effect: int
    how: str
    depth: int


class CausalIndex:
    """Happened-before on the events of one tape.

    Parameters
    ----------
    process, seq, cause, time_ns : ndarray (event,)
        Columns of /events.
    clock : ndarray (event, process)
        Vector clocks; entries below 1: nothing heard of that process.

    Raises
    ------
    TapeError
        When a process counts its records or hears of others backwards.
    """

    def __init__(self, process: Ints, seq: Ints, clock: Ints, cause: Ints, time_ns: Ints) -> None:
        self.count = len(process)
        self.width = max(int(process.max(initial=-1)) + 1, clock.shape[1] if clock.ndim == 2 else 0)
        self.process, self.seq, self.cause = process, seq, cause
        order = np.argsort(process.astype(np.int16), kind="stable")  # of short numbers in linear time
        bounds = np.searchsorted(process[order], np.arange(self.width + 1))
        self.rows = [order[begin:end] for begin, end in pairwise(bounds)]
        self.rank = np.empty(self.count, np.int64)
        self.rank[order] = np.arange(self.count) - bounds[process[order]]
        self.seqs = [seq[rows] for rows in self.rows]
        self.clocks = [self._clocks(clock, rows) for rows in self.rows]
        self.times = [np.maximum.accumulate(time_ns[rows]) for rows in self.rows]
        self.lengths = np.array([len(rows) for rows in self.rows], np.int64)
        self._check()
        self._by_cause: tuple[Ints, Ints] | None = None

    def _clocks(self, clock: Ints, rows: Ints) -> Ints:
        """(process, own event): what is searched lies together."""
        own = np.zeros((self.width, len(rows)), np.int64)
        own[: clock.shape[1]] = clock[rows].T
        return own

    def _check(self) -> None:
        for q, (seqs, clocks) in enumerate(zip(self.seqs, self.clocks, strict=True)):
            if (np.diff(seqs) <= 0).any():
                at = int(self.rows[q][np.argmax(np.diff(seqs) <= 0) + 1])
                raise TapeError(f"event {at}: the record numbers of {label_of(q)} do not rise; expected a whole tape")
            if (clocks[:, 1:] < clocks[:, :-1]).any():
                at = int(self.rows[q][int((clocks[:, 1:] < clocks[:, :-1]).any(0).argmax()) + 1])
                raise TapeError(f"event {at}: the clock of {label_of(q)} falls; expected one that only rises")

    def checked(self, event: int) -> int:
        """The event, counted from the end if it is negative.

        Raises
        ------
        TapeError
            When there is no such event.
        """
        event = whole(event, "event")
        if not -self.count <= event < self.count:
            raise TapeError(f"there is no event {event}; the tape has {self.count} events, 0 to {self.count - 1}")
        return event % self.count

    def clock_of(self, event: int) -> Ints:
        """Clock of an event (process,)."""
        return np.asarray(self.clocks[self.process[event]][:, self.rank[event]])

    def last(self, q: int, stop: int) -> int:
        """Event of process ``q`` before place ``stop`` of its own events, -1 if there is none."""
        return int(self.rows[q][stop - 1]) if stop > 0 else -1

    def before(self, a: int, b: int) -> bool:
        """Whether event a happened before event b."""
        return a != b and bool(self.clocks[self.process[b]][self.process[a], self.rank[b]] >= self.seq[a])

    def past(self, event: int) -> Ints:
        """Events of each process (process,) that happened before an event: how many, from its first on."""
        clock = self.clock_of(event)
        stops = np.array([np.searchsorted(s, c, "right") for s, c in zip(self.seqs, clock, strict=True)], np.int64)
        stops[self.process[event]] = self.rank[event]
        return stops

    def future(self, event: int) -> Ints:
        """Place of the first event of each process (process,) that an event happened before."""
        p, seq = int(self.process[event]), self.seq[event]
        starts = np.array([np.searchsorted(clocks[p], seq) for clocks in self.clocks], np.int64)
        starts[p] = self.rank[event] + 1
        return starts

    def closed(self, stops: Ints) -> Ints:
        """The greatest consistent cut inside prefixes (process,): closed under causes."""
        stops = stops.copy()
        while True:
            seqs = [own[stop - 1] if stop else 0 for own, stop in zip(self.seqs, stops, strict=True)]
            allowed = [
                min(int(np.searchsorted(own, seq, "right")) for own, seq in zip(clocks, seqs, strict=True))
                for clocks in self.clocks
            ]
            tighter = np.minimum(stops, allowed)
            if (tighter == stops).all():
                return stops
            stops = tighter

    def at_time(self, time_ns: int) -> Ints:
        """Events of each process (process,) up to a time on its own clock."""
        return np.array([np.searchsorted(times, time_ns, "right") for times in self.times], np.int64)

    def recorded_before(self, count: int) -> Ints:
        """Events of each process (process,) among the first ``count`` of the journal."""
        return np.array([np.searchsorted(rows, count) for rows in self.rows], np.int64)

    def direct_causes(self, event: int) -> list[Link]:
        """What an event follows from without anything between, ascending: see `workbench.tape.causal_order`."""
        own, stops = int(self.process[event]), self.past(event)
        there = np.flatnonzero(stops)
        lasts = [self.last(q, int(stops[q])) for q in there.tolist()]
        links = {}
        for q, candidate, is_known in zip(there.tolist(), lasts, self._known(lasts), strict=True):
            if q == own:
                links[candidate] = PROGRAM_ORDER
            elif not is_known:
                links[candidate] = HEARD
        if self.cause[event] >= 0:
            links[int(self.cause[event])] = MESSAGE
        return [Link(*link) for link in sorted(links.items())]

    def arrows(self, event: int, depth: int) -> Iterator[Arrow]:
        """Direct causes and effects of an event, theirs, and so on: so many steps deep, the nearest first."""
        past, future, seen = {event}, {event}, set[tuple[int, int]]()
        for far in range(1, depth + 1):
            found = [Arrow(link.event, at, link.how, -far) for at in sorted(past) for link in self.direct_causes(at)]
            yield from (one for one in found if (one.cause, one.effect) not in seen)
            seen |= {(one.cause, one.effect) for one in found}
            past = {one.cause for one in found}
            found = [Arrow(at, link.event, link.how, far) for at in sorted(future) for link in self.direct_effects(at)]
            yield from (one for one in found if (one.cause, one.effect) not in seen)
            seen |= {(one.cause, one.effect) for one in found}
            future = {one.effect for one in found}

    def _known(self, events: list[int]) -> list[bool]:
        """Of events of different processes: whether each happened before another of them."""
        if not events:
            return []
        heard = np.stack([self.clock_of(event) for event in events])[:, self.process[events]]
        np.fill_diagonal(heard, -1)
        known: list[bool] = (heard.max(0) >= self.seq[events]).tolist()
        return known

    def direct_effects(self, event: int) -> list[Link]:
        """The events of which an event is a direct cause, ascending."""
        starts, received = self.future(event), self._received(event)
        firsts = {int(self.rows[q][start]) for q, start in enumerate(starts) if start < self.lengths[q]}
        links = []
        for candidate in sorted(firsts | set(received)):
            links += [Link(candidate, how) for cause, how in self.direct_causes(candidate) if cause == event]
        return links

    def _received(self, event: int) -> list[int]:
        if self._by_cause is None:
            order = np.argsort(self.cause, kind="stable")
            self._by_cause = order, self.cause[order]
        order, causes = self._by_cause
        begin, end = np.searchsorted(causes, event), np.searchsorted(causes, event, "right")
        return [int(row) for row in order[begin:end]]

    def chain(self, a: int, b: int) -> list[Link]:
        """Events by which a reaches b, first a, last b; each with how it follows from the one before.

        Of one process only the first event that a had reached and the one that the chain leaves from are named.

        Raises
        ------
        TapeError
            When a did not happen before b.
        """
        if not self.before(a, b):
            other = f"event {b} happened before event {a}" if self.before(b, a) else "they are concurrent"
            raise TapeError(f"event {a} did not happen before event {b}: {'they are one' if a == b else other}")
        chain, at, starts = [], b, self.future(a)
        while self.process[at] != self.process[a]:
            first = int(self.rows[self.process[at]][starts[self.process[at]]])
            if first != at:
                chain.append(Link(at, PROGRAM_ORDER))
            cause, how = self._towards(a, first)
            chain.append(Link(first, how))
            at = cause
        if at != a:
            chain.append(Link(at, PROGRAM_ORDER))
        return [Link(a, "begin"), *reversed(chain)]

    def _towards(self, a: int, event: int) -> Link:
        """Direct cause of an event that is a or follows from it; a send that is recorded, if there is one."""
        able = [link for link in self.direct_causes(event) if link.event == a or self.before(a, link.event)]
        return next((link for link in able if link.how == MESSAGE), able[0])

    def event_set(self, what: str, starts: Any, stops: Any) -> EventSet:
        """Ranges of own events of each process as a set."""
        return EventSet(what, self.rows, np.asarray(starts, np.int64), np.asarray(stops, np.int64))

    def cut(self, what: str, stops: Ints, asked: Ints) -> Cut:
        """A cut, beside the prefixes that were asked for."""
        left_out = self.event_set(f"left out of the {what}", stops, np.maximum(asked, stops))
        return Cut(what, self.rows, np.zeros_like(stops), stops, left_out)
