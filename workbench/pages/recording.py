"""A tape that is looked through: its events by number, where the cursor may go, what is known at it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.analysis.arrays.tables import since_began
from workbench.analysis.from_tape import tables_of
from workbench.pages.event_words import NOTABLE, Said, labels
from workbench.protocol.records import Kind
from workbench.tape import TapeError, open_tape
from workbench.tape.moment import Moment

AROUND = 16
"""Events of the list before and after the cursor."""
COLUMNS = ("kind", "process", "peer", "fragment", "round", "version", "step", "steps", "value", "setting")
STEPS = {"event": None, "round": Kind.ROUND_OPENED, "merge": Kind.MERGED, "fault": Kind.FAULT_INJECTED}
"""What the cursor may step by."""
PAST, FUTURE, BESIDE, NOW = "past", "future", "beside", "now"

Ints = np.ndarray[Any, np.dtype[np.int64]]


class Look(NamedTuple):
    """What is known at an event.

    Attributes
    ----------
    event : int
    moment : Moment
    rows : list of (int, str)
        Events around it, and how each stands to it: ``past``, ``future``, ``beside`` (neither), ``now``.
    why : str
        The sentence of the merge that the event is, or of the last one before it; empty before the first.
    counts : (int, int, int)
        Events in its past, in its future, in neither.
    lanes : list of (int, float, float)
        By process: until when its own events are in the past of this one, and from when on they are in its future
        [s from the start of rounds]; -inf and inf for none.
    """

    event: int
    moment: Moment
    rows: list[tuple[int, str]]
    why: str
    counts: tuple[int, int, int]
    lanes: list[tuple[int, float, float]]


class Recording:
    """Parameters
    ----------
    path : Path
        Folder of a run.

    Attributes
    ----------
    tape : xarray.DataTree
    count : int
        Events.
    time_s : ndarray (event,)
        On the clock of its process, from the start of rounds [s].

    Raises
    ------
    TapeError
        It cannot be read, or holds no event.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tape = open_tape(path)
        events = self.tape["events"].dataset
        self.count = int(events.sizes["event"])
        if not self.count:
            raise TapeError(f"the tape of {path.name} holds no event yet; wait until its run has begun")
        self._columns = {name: events[name].values for name in COLUMNS}
        self._reasons = self.tape.wb.reasons()
        tables = tables_of(self.tape)
        self.time_s = np.asarray(since_began(tables, events["time_ns"].values), float)
        self._until_s = np.maximum.accumulate(self.time_s)
        kinds = self._columns["kind"]
        self._notable = np.flatnonzero(np.isin(kinds, [int(kind) for kind in NOTABLE]))
        self._places = {name: np.flatnonzero(kinds == int(kind)) for name, kind in STEPS.items() if kind is not None}
        self._merges = self.tape["merges"].dataset
        self._merge_events = self._merges["event"].values

    def said(self, event: int) -> Said:
        """What an event says."""
        values = {name: column[event].item() for name, column in self._columns.items()}
        learners = ""
        if values["kind"] == Kind.MERGED:
            row = int(np.searchsorted(self._merge_events, event))
            if row < len(self._merge_events) and self._merge_events[row] == event:
                learners = labels(np.flatnonzero(self._merges["included"].values[row]).tolist())
        return Said(**values, reason=str(self._reasons[event]), learners=learners)

    def step(self, event: int, by: str, forward: bool) -> int:
        """The next or the previous event of a kind; the same where there is none."""
        if by not in self._places:
            return min(max(event + (1 if forward else -1), 0), self.count - 1)
        places = self._places[by]
        at = int(np.searchsorted(places, event, "right" if forward else "left")) - (0 if forward else 1)
        return int(places[at]) if 0 <= at < len(places) else event

    def numbers(self) -> dict[str, int]:
        """How many events of each kind the cursor may step to."""
        return {name: len(places) for name, places in self._places.items()}

    def at_time(self, time_s: float) -> int:
        """The last event at a time."""
        return int(np.clip(np.searchsorted(self._until_s, time_s, "right") - 1, 0, self.count - 1))

    def look(self, event: int) -> Look:
        """Everything that is shown of an event.  Takes milliseconds; more at the first call."""
        past, future = self.tape.wb.past(event), self.tape.wb.future(event)
        in_past, in_future = past.mask(), future.mask()
        here = int(np.searchsorted(self._notable, event))
        around = self._notable[max(0, here - AROUND) : here + AROUND].tolist()
        rows = [(one, self._relation(one, event, in_past, in_future)) for one in sorted({*around, event})]
        counts = int(in_past.sum()), int(in_future.sum())
        lanes = [self._reach(process, in_past, in_future) for process in np.unique(self._columns["process"]).tolist()]
        beside = self.count - sum(counts)
        return Look(event, self.tape.wb.at(event), rows, self._why(event), (*counts, max(0, beside - 1)), lanes)

    @staticmethod
    def _relation(one: int, event: int, in_past: Any, in_future: Any) -> str:
        return NOW if one == event else PAST if in_past[one] else FUTURE if in_future[one] else BESIDE

    def _reach(self, process: int, in_past: Any, in_future: Any) -> tuple[int, float, float]:
        mine = self._columns["process"] == process
        before, after = self.time_s[mine & in_past], self.time_s[mine & in_future]
        return process, float(before.max(initial=-np.inf)), float(after.min(initial=np.inf))

    def _why(self, event: int) -> str:
        merge = int(np.searchsorted(self._merge_events, event, "right")) - 1
        if merge < 0:
            return ""
        if "why" in self.tape.wb.untold:
            return f"This tape cannot tell why: {self.tape.wb.untold['why']}."
        return str(self.tape.wb.why(merge))
