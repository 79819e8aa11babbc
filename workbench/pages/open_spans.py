"""What lasts on the lanes of a run that goes on: faults until they are over, processes until they join again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from workbench.analysis.arrays.presence import acted
from workbench.pages.tails import Tail
from workbench.protocol.faults import ENDING_KINDS, FOREVER_NS, LASTING_KINDS
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, Record, process_of
from workbench.views.palette import VERMILLION

LEAST_S = 0.04
"""What can just be seen."""
LATE_S = 1.0
"""So long after the run should have told that something is over, it is taken to be."""
BEFORE = float("-inf")
"""Begin of what lasted already when the first status came."""
UNHEARD = "#8b949e"
SAID_DOWN = ("down", "failed")


class Span(NamedTuple):
    """Attributes
    ----------
    process : int
        Whose lane.
    start_s, end_s : float
        Since the run began [s].
    what : str
        For those who hover.
    colour : str
    height : float
        Of a lane's.
    name : str
        Written into it.
    """

    process: int
    start_s: float
    end_s: float
    what: str
    colour: str
    height: float
    name: str = ""

    @property
    def is_band(self) -> bool:
        """Whether it stands behind what the process did."""
        return self.colour in (VERMILLION, UNHEARD)


class _Open(NamedTuple):
    process: int
    kind: str
    start_s: float
    until_s: float = float("inf")
    name: str = ""

    def span(self, end_s: float, low_s: float = BEFORE) -> Span:
        start_s = max(self.start_s, low_s)
        return Span(self.process, start_s, max(end_s, start_s), f"fault: {self.kind}", VERMILLION, 0.95, self.name)


class OpenSpans:
    """Parameters
    ----------
    tail : Tail of Span
        Takes what is over, and what acts once.
    """

    def __init__(self, tail: Tail[Span]) -> None:
        self._tail = tail
        self._faults: dict[int, _Open] = {}
        self._downs: dict[int, _Open] = {}
        self._looked = False

    def note(self, record: Record) -> None:
        """Take a record."""
        at_s = record.time_ns / 1e9
        if record.kind == Kind.FAULT_INJECTED and acted(record.detail):
            self._struck(record, at_s)
        elif record.kind == Kind.FAULT_ENDED:
            self._ended(record, at_s)
        elif record.kind == Kind.PROCESS_ENDED and record.reason != "exit 0":
            self._close(lambda one: one.process == record.peer and one.kind.startswith("stall"), at_s)
            down = _Open(record.peer, f"down, {record.reason}", at_s, name="down")
            self._downs.setdefault(record.peer, down)
        elif record.kind == Kind.LEARNER_JOINED:
            self._up(record.peer, at_s)
        elif record.kind == Kind.SYNCER_STARTED:
            self._up(SYNCER, at_s)
        elif record.kind == Kind.LEARNER_LOST and record.reason in ("removed", "left", "ended"):
            self._close(lambda one: one.process == record.peer, at_s)
            self._up(record.peer, at_s)

    def _struck(self, record: Record, at_s: float) -> None:
        kind, until_ns = record.reason, int(record.detail.get("until_ns", record.time_ns + record.value * 1e9))
        if kind in ENDING_KINDS:
            self._up(record.peer, at_s)
            self._downs[record.peer] = _Open(record.peer, kind, at_s, name=f"down: {kind.removesuffix('_syncer')}")
        elif until_ns <= record.time_ns:
            self._tail.add([_Open(record.peer, kind, at_s, name=kind).span(at_s + LEAST_S)])
        else:
            until_s = until_ns / 1e9 if until_ns < FOREVER_NS else float("inf")
            self._faults[record.detail.get("fault", -1)] = _Open(record.peer, kind, at_s, until_s, kind)

    def _ended(self, record: Record, at_s: float) -> None:
        known = self._faults.pop(record.detail.get("fault", -1), None)
        if known is None:  # it counted messages, or it struck before anybody watched
            known = _Open(record.peer, record.reason, record.detail.get("began_ns", record.time_ns) / 1e9)
            self._close(lambda one: (one.process, one.kind, one.start_s) == (record.peer, record.reason, BEFORE), at_s)
        self._tail.add([known.span(max(at_s, known.start_s + LEAST_S))])

    def _up(self, process: int, at_s: float) -> None:
        down = self._downs.pop(process, None)
        if down is not None and down.start_s > BEFORE:
            self._tail.add([down.span(at_s)])

    def _close(self, over: Callable[[_Open], bool], at_s: float) -> None:
        for number, one in list(self._faults.items()):
            if over(one):
                del self._faults[number]
                if one.start_s > BEFORE:
                    self._tail.add([one.span(at_s)])

    def look(self, learners: Sequence[dict[str, Any]], now_s: float) -> None:
        """Take what a status says: what lasted already at the first, and the end of what no record told the end of."""
        acting = {process_of(one["learner"]): list(one.get("acting", ())) for one in learners}
        for one in () if self._looked else learners:
            process = process_of(one["learner"])
            known = {fault.kind for fault in self._faults.values() if fault.process == process}
            for place, kind in enumerate(kind for kind in acting[process] if kind not in known):
                self._faults[-2 - 1000 * process - place] = _Open(process, kind, BEFORE, name=kind)
            if one["state"] == "failed" or (one["state"] == "waiting" and one.get("number")):
                self._downs.setdefault(process, _Open(process, "down", BEFORE, name="down"))
        self._looked = True
        for process in [one.process for one in self._downs.values()]:
            there = process >= FIRST_LEARNER and _is_there(learners, process - FIRST_LEARNER)
            if there and now_s - self._downs[process].start_s > LATE_S:
                self._up(process, now_s)
        self._close(lambda one: _should_be_over(one, acting, now_s), now_s)

    def at(self, now_s: float, low_s: float, unheard: dict[int, float]) -> list[Span]:
        """What lasts now, as far as it lies behind ``low_s``; ``unheard``: learners, and how long nothing was heard."""
        lasting = [one.span(now_s, low_s) for one in (*self._faults.values(), *self._downs.values())]
        named = {one.process for one in lasting}
        for m, for_s in unheard.items():
            name = "" if process_of(m) in named else "not heard yet"
            since_s = max(low_s, now_s - for_s)
            lasting.append(Span(process_of(m), since_s, now_s, "nothing heard yet", UNHEARD, 0.6, name))
        return lasting


def _is_there(learners: Sequence[dict[str, Any]], learner: int) -> bool:
    return learner < len(learners) and learners[learner]["state"] == "running" and bool(
        learners[learner].get("connected")
    )  # fmt: skip


def _should_be_over(one: _Open, acting: dict[int, list[str]], now_s: float) -> bool:
    if now_s - one.start_s <= LATE_S:
        return False
    forgotten = one.kind in LASTING_KINDS and one.process in acting and one.kind not in acting[one.process]
    return forgotten or now_s > one.until_s + LATE_S
