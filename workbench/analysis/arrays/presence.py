"""When each learner was alive, connected, healed and under a fault: spans of time, from the events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.analysis.arrays.spans import EMPTY, intersect, union
from workbench.analysis.arrays.tables import Array, Tables, details_of, events_of, learner_count, run_span
from workbench.protocol.records import FIRST_LEARNER, Kind

FOREVER = 2**62
DEATHS = ("exit", "superseded")
STOPS, CONTINUE = ("stall", "stop"), "cont"
"""Fault kinds that stop a process and let it go on."""
_KINDS = (
    Kind.SYNCER_STARTED, Kind.LEARNER_JOINED, Kind.LEARNER_HEALED, Kind.LEARNER_LOST, Kind.PROCESS_STARTED,
    Kind.PROCESS_ENDED,
)  # fmt: skip


@dataclass
class Life:
    """One process of a learner.

    Attributes
    ----------
    number, started_ns : int
        Process number and start.
    joined_ns, joined_event : int
        First WELCOME, -1 if none.
    healed_ns, ended_ns : int
        First healed, and the end; -1 if not.
    died : bool
        It ended otherwise than by leaving at the end of the run.
    """

    number: int
    started_ns: int
    joined_ns: int = -1
    joined_event: int = -1
    healed_ns: int = -1
    ended_ns: int = -1
    died: bool = False


@dataclass
class Presence:
    """Lives and connections of one learner.

    Attributes
    ----------
    lives : list of Life
        In order of start.
    connected : ndarray (span, 2)
        Between WELCOME or REJOIN and the loss of the connection [ns].
    removed_ns : int
        Planned removal, -1 if none.
    close_ns : int
        End of the run, where open spans end.
    """

    close_ns: int
    lives: list[Life] = field(default_factory=list)
    connected: Array = field(default_factory=lambda: EMPTY)
    removed_ns: int = -1

    @property
    def first_joined_ns(self) -> int:
        """First WELCOME, -1 if none."""
        return min((life.joined_ns for life in self.lives if life.joined_ns >= 0), default=-1)

    @property
    def alive(self) -> Array:
        """Spans in which a process lives."""
        return union([(life.started_ns, self._end(life)) for life in self.lives])

    @property
    def healed(self) -> Array:
        """Spans in which the living process is healed."""
        return union([(life.healed_ns, self._end(life)) for life in self.lives if life.healed_ns >= 0])

    @property
    def expected(self) -> Array:
        """Spans in which it is healed and connected."""
        return intersect(self.healed, self.connected)

    def _end(self, life: Life) -> int:
        return life.ended_ns if life.ended_ns >= 0 else self.close_ns


class _Reader:
    """Follows one learner through the membership events."""

    def __init__(self, close_ns: int) -> None:
        self.presence = Presence(close_ns)
        self.open_since = -1
        self.connections: list[tuple[int, int]] = []
        self.supervised: set[int] = set()
        self.lost_by = ""

    def life(self, number: int, time_ns: int) -> Life:
        """Life of a process number, begun now if nothing told of its start."""
        lives = self.presence.lives
        for life in lives:
            if life.number == number:
                return life
        for life in lives:
            self.end(life, self._last_sign(time_ns), died=True)
        lives.append(Life(number, time_ns))
        return lives[-1]

    def _last_sign(self, time_ns: int) -> int:
        """When a life of which nobody saw the end was last known to be there, ``time_ns`` at the latest."""
        return self.connections[-1][1] if self.open_since < 0 and self.connections else time_ns

    @staticmethod
    def end(life: Life, time_ns: int, *, died: bool) -> None:
        """End a life, the first time that anybody says so."""
        if life.ended_ns < 0:
            life.ended_ns, life.died = time_ns, died

    def joined(self, time_ns: int, event: int, number: int) -> None:
        """Take a WELCOME or REJOIN."""
        life = self.life(number, time_ns)
        if life.joined_ns < 0:
            life.joined_ns, life.joined_event = time_ns, event
        self.disconnected(time_ns)
        self.open_since = time_ns
        self.lost_by = ""

    def disconnected(self, time_ns: int) -> None:
        """Close the open connection."""
        if self.open_since >= 0:
            self.connections.append((self.open_since, time_ns))
        self.open_since = -1

    def lost(self, time_ns: int, reason: str) -> None:
        """Take a LEARNER_LOST."""
        self.disconnected(time_ns)
        self.lost_by = reason
        if reason == "removed":
            self.presence.removed_ns = time_ns
        joined = [life for life in self.presence.lives if life.joined_ns >= 0]
        if joined and reason in (*DEATHS, "ended", "left", "removed"):
            self.end(joined[-1], time_ns, died=reason in DEATHS)

    def done(self) -> Presence:
        """Close what is open; whose socket closed for good, unseen by a supervisor, is taken to have died then."""
        for life in self.presence.lives[-1:]:
            if life.number not in self.supervised and self.lost_by == "socket":
                self.end(life, self._last_sign(self.presence.close_ns), died=True)
        self.disconnected(self.presence.close_ns)
        self.presence.connected = union(self.connections)
        return self.presence


def presences(tables: Tables) -> list[Presence]:
    """Presence of each learner, by learner id."""
    events, (_, close_ns) = tables["events"], run_span(tables)
    readers = [_Reader(close_ns) for _ in range(learner_count(tables))]
    wanted = events_of(tables, *_KINDS)
    names = ("kind", "peer", "time_ns", "value", "reason")
    rows = zip(wanted.tolist(), *(events[name][wanted].tolist() for name in names), strict=True)
    for event, kind, peer, time_ns, value, reason in rows:
        if kind == Kind.SYNCER_STARTED:
            for reader in readers:
                reader.disconnected(time_ns)
        elif peer >= FIRST_LEARNER:
            _enter(readers[peer - FIRST_LEARNER], event, kind, time_ns, value, reason)
    return [reader.done() for reader in readers]


def _enter(reader: _Reader, event: int, kind: int, time_ns: int, value: float, reason: str) -> None:
    if kind == Kind.LEARNER_JOINED:
        reader.joined(time_ns, event, int(value))
    elif kind == Kind.LEARNER_LOST:
        reader.lost(time_ns, reason)
    elif kind == Kind.PROCESS_STARTED:
        reader.supervised.add(int(value))
        reader.life(int(value), time_ns)
    elif kind == Kind.PROCESS_ENDED:
        ended = [life for life in reader.presence.lives if life.number == int(value)]
        if ended:
            reader.end(ended[0], time_ns, died=time_ns < reader.presence.close_ns)
    elif reader.presence.lives:
        healed = [life for life in reader.presence.lives if life.joined_ns >= 0]
        if healed and healed[-1].healed_ns < 0:
            healed[-1].healed_ns = time_ns


@dataclass(frozen=True)
class Faults:
    """Injected faults, one row each, in journal order.

    Attributes
    ----------
    process, start_ns, end_ns : ndarray (fault,)
        Target, and the times between which it acts (equal for one that acts once).
    kind : ndarray (fault,) of str
    """

    process: Array
    start_ns: Array
    end_ns: Array
    kind: Array

    def spans(self, process: int | None = None, kinds: tuple[str, ...] = ()) -> Array:
        """Windows of a process (None: of any) and of kinds (none: of all), those that act once as 1 ns, merged."""
        keep = np.ones(len(self.process), bool)
        if process is not None:
            keep &= self.process == process
        if kinds:
            keep &= np.isin(self.kind.astype(str), kinds)
        return union(np.stack([self.start_ns[keep], np.maximum(self.end_ns, self.start_ns + 1)[keep]], 1))


def faults(tables: Tables) -> Faults:
    """Faults that had an effect, until they ended; a stop of unknown length until the next ``cont`` of its process."""
    events = tables["events"]
    wanted = events_of(tables, Kind.FAULT_INJECTED)
    details = details_of(tables, Kind.FAULT_INJECTED)
    acting = np.array([acted(details.get(event, {})) for event in wanted.tolist()], bool)
    wanted = wanted[acting] if len(wanted) else wanted
    process, start, kind = (events[name][wanted] for name in ("peer", "time_ns", "reason"))
    end, known = start.copy(), ends(tables)
    for i, event in enumerate(wanted.tolist()):
        detail = details.get(event, {})
        until = known.get(detail.get("fault", -1), detail.get("until_ns"))
        if until is not None:
            end[i] = until if until >= 0 else FOREVER
        elif kind[i] in STOPS:
            later = np.flatnonzero((process == process[i]) & (kind == CONTINUE) & (start >= start[i]))
            end[i] = start[later[0]] if len(later) else FOREVER
    return Faults(process, start, end, kind)


def ends(tables: Tables) -> dict[int, int]:
    """When faults were over, healed or used up [ns], by their number in the run."""
    found = details_of(tables, Kind.FAULT_ENDED)
    times = tables["events"]["time_ns"]
    return {int(found[e]["fault"]): int(times[e]) for e in events_of(tables, Kind.FAULT_ENDED).tolist() if e in found}


def acted(detail: dict[str, Any]) -> bool:
    """Whether a fault with this detail had a target to act on."""
    effect = detail.get("effect", True)
    return bool(effect) and not str(effect).startswith(("none", "without"))
