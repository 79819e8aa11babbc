"""A tape that is looked through: its events by number, where the cursor may go, what is known at it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.analysis.arrays.tables import details_of, since_began
from workbench.analysis.from_tape import tables_of
from workbench.analysis.merge_reasons import Why
from workbench.analysis.timelines import Timeline, timeline
from workbench.config import from_toml
from workbench.pages.badges import preset_words
from workbench.pages.event_words import NOTABLE, Said, asked_for, labels, missed_by
from workbench.protocol.records import Kind, process_of
from workbench.tape import TapeError, open_tape
from workbench.tape.causal_order import index_of
from workbench.tape.causality import Arrow
from workbench.tape.ledger_course import totals_at
from workbench.tape.marks import MEANINGS
from workbench.tape.moment import Moment

AROUND = 16
"""Events of the list before and after the cursor."""
LINKS_MAX = 6
"""Direct causes, and effects, that are named."""
COLUMNS = ("kind", "process", "peer", "fragment", "round", "version", "step", "steps", "value", "setting")
STEPS = ("event", "round", "merge", "fault", "exclusion")
"""What the cursor may step by; an exclusion is a merge that somebody is not in, or a contribution that was dropped."""
PLACES = {"round": Kind.ROUND_OPENED, "merge": Kind.MERGED, "fault": Kind.FAULT_INJECTED}
PAST, FUTURE, BESIDE, NOW = "past", "future", "beside", "now"

Ints = np.ndarray[Any, np.dtype[np.int64]]


class Look(NamedTuple):
    """What is known at an event.

    Attributes
    ----------
    event : int
        The cursor.
    held : int
        The event whose past and future are told: the cursor's own, or one that is held while the cursor moves.
    moment : Moment
        At the cursor.
    rows : list of (int, str)
        Events around the cursor, and how each stands to the one that is held: ``past``, ``future``, ``beside``
        (neither), ``now``.
    why : Why or None
        The merge that the held event is, or the last one before it; None before the first.
    untold : str
        Why this tape cannot tell that, empty if it can.
    counts : (int, int, int)
        Events in the past of the held one, in its future, in neither.
    lanes : list of (int, float, float)
        By process: until when its own events are in that past, and from when on they are in that future
        [s from the start of rounds]; -inf and inf for none.
    arrows : list of Arrow
        From direct cause to direct effect around the held one, as deep as was asked for.
    mark : str
        Where the event at the cursor comes from: recorded, re_simulated or recomputed.
    """

    event: int
    held: int
    moment: Moment
    rows: list[tuple[int, str]]
    why: Why | None
    untold: str
    counts: tuple[int, int, int]
    lanes: list[tuple[int, float, float]]
    arrows: list[Arrow]
    mark: str

    @property
    def links(self) -> list[tuple[str, int, str]]:
        """``cause`` or ``effect``, its event, how it follows: some of those directly before and behind the held one."""
        causes = [("cause", one.cause, one.how) for one in self.arrows if one.depth == -1]
        effects = [("effect", one.effect, one.how) for one in self.arrows if one.depth == 1]
        return causes[-LINKS_MAX:] + effects[:LINKS_MAX]


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
        self.tape.name = path.name
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
        struck = details_of(tables, Kind.FAULT_INJECTED)
        self._missed = {event: why for event, detail in struck.items() if (why := missed_by(detail))}
        asked = details_of(tables, Kind.SETTING_CHANGED, Kind.SETTING_REFUSED)
        self._asked = {event: asked_for(detail) for event, detail in asked.items()}
        self._merges = self.tape["merges"].dataset
        self._merge_events = self._merges["event"].values
        left_out = self._merge_events[~self._merges["included"].values.astype(bool).all(1)]
        of_kind = {kind: np.flatnonzero(kinds == int(kind)) for kind in PLACES.values()}
        self._places = {name: of_kind[kind] for name, kind in PLACES.items()}
        self._places["exclusion"] = np.union1d(left_out, np.flatnonzero(kinds == int(Kind.FRAGMENT_DROPPED)))
        self._listed = {
            "notable": np.flatnonzero(np.isin(kinds, [int(kind) for kind in NOTABLE])),
            "merges": self._places["merge"],
            "faults": np.flatnonzero(np.isin(kinds, [int(Kind.FAULT_INJECTED), int(Kind.FAULT_ENDED)])),
            "exclusions": self._places["exclusion"],
            "everything": np.arange(self.count),
        }
        self._timelines: dict[str, Timeline] = {}
        self._of_learner: dict[tuple[str, int], Ints] = {}
        self._marks = self.tape.wb.marks().values
        self._index = index_of(self.tape)
        self._reached, self._ahead = _extremes(self.time_s, self._index.rows)
        self._totals_told = False

    def count_tokens(self) -> None:
        """Count what became of all tokens, for `tokens`.  Takes a second for some hundred thousand events."""
        totals_at(self.tape, self.count - 1)
        self._totals_told = True

    def tokens(self, event: int) -> dict[str, float] | None:
        """Run totals ``tokens_*`` just after an event; None before they are counted."""
        return totals_at(self.tape, event) if self._totals_told else None

    def badges(self) -> list[str]:
        """What the run was: preset, with what was changed of it, and seed."""
        text = str(self.tape.attrs.get("config") or "")
        if not text.strip():
            return []
        config = from_toml(text)
        return [one for one in (preset_words(config), f"seed {config.seed}") if one]

    def timeline(self, name: str) -> Timeline:
        """The events along an axis."""
        if name not in self._timelines:
            self._timelines[name] = timeline(self.tape, name, self.time_s)
        return self._timelines[name]

    def said(self, event: int) -> Said:
        """What an event says."""
        values = {name: column[event].item() for name, column in self._columns.items()}
        learners = ""
        if values["kind"] == Kind.MERGED:
            row = self.merge_of(event)
            if row >= 0 and self._merge_events[row] == event:
                learners = labels(np.flatnonzero(self._merges["included"].values[row]).tolist())
        return Said(
            **values, reason=str(self._reasons[event]), learners=learners, missed=self._missed.get(event, ""),
            values=self._asked.get(event, ""),
        )  # fmt: skip

    def merge_of(self, event: int) -> int:
        """Row of the merge that an event is, or of the last one before it; -1 before the first."""
        return int(np.searchsorted(self._merge_events, event, "right")) - 1

    def step(self, event: int, by: str, forward: bool, learner: int = -1) -> int:
        """The next or the previous event of a kind, or on the lane of a learner; the same where there is none."""
        if by == "event" or (by == "lane" and learner < 0):
            return min(max(event + (1 if forward else -1), 0), self.count - 1)
        places = self._lane(process_of(learner)) if by == "lane" else self._places[by]
        at = int(np.searchsorted(places, event, "right" if forward else "left")) - (0 if forward else 1)
        return int(places[at]) if 0 <= at < len(places) else event

    def _lane(self, process: int) -> Ints:
        """Events of a process."""
        return self._index.rows[process] if 0 <= process < len(self._index.rows) else np.zeros(0, np.int64)

    def places(self, by: str) -> Ints:
        """Events of a kind that the cursor may step to."""
        return self._places[by]

    def column(self, name: str) -> Any:
        """A column of the events, of `COLUMNS`."""
        return self._columns[name]

    def numbers(self) -> dict[str, int]:
        """How many events of each kind the cursor may step to."""
        return {name: len(places) for name, places in self._places.items()}

    def at_time(self, time_s: float) -> int:
        """The last event at a time."""
        return int(np.clip(np.searchsorted(self._until_s, time_s, "right") - 1, 0, self.count - 1))

    def picked(self, name: str, x: float, process: int) -> int:
        """The event at a place of a figure: the nearest on a lane, a merge, or the last at a time; -1 for none."""
        if name == "swimlanes":
            mine = self._lane(process)
            return int(mine[np.abs(self.time_s[mine] - x).argmin()]) if len(mine) else -1
        if name == "contributions":
            return int(self._merge_events[int(x)]) if 0 <= x < len(self._merge_events) else -1
        if name == "staleness":
            rounds = self._merges["round"].values
            return int(self._merge_events[np.abs(rounds - x).argmin()]) if len(rounds) else -1
        return self.at_time(x)

    def look(self, event: int, held: int = -1, show: str = "notable", learner: int = -1, depth: int = 1) -> Look:
        """Everything that is shown at a cursor.  Takes milliseconds; more at the first call.

        Parameters
        ----------
        event : int
            The cursor.
        held : int
            The event whose past and future are told; -1 for the cursor's.
        show : str
            Which events are listed.
        learner : int
            Of only this one and the syncer, -1 of all.
        depth : int
            How many direct causes and effects behind each other arrows show, at least 1.
        """
        held = event if held < 0 else min(held, self.count - 1)
        past, future = self._index.past(held), self._index.future(held)
        rows = [(one, self._relation(one, held, past, future)) for one in self._around(event, show, learner)]
        counts = int(past.sum()), int((self._index.lengths - future).sum())
        lanes = [self._reach(q, past[q], future[q]) for q in np.flatnonzero(self._index.lengths).tolist()]
        beside = max(0, self.count - sum(counts) - 1)
        why, untold = self._why(held)
        mark = MEANINGS[int(self._marks[event])]
        arrows = self.tape.wb.arrows(held, max(depth, 1))
        return Look(event, held, self.tape.wb.at(event), rows, why, untold, (*counts, beside), lanes, arrows, mark)

    def _around(self, event: int, show: str, learner: int) -> list[int]:
        listed = self._listed[show] if learner < 0 else self._list_of(show, learner)
        here = int(np.searchsorted(listed, event))
        return sorted({*listed[max(0, here - AROUND) : here + AROUND].tolist(), event})

    def _list_of(self, show: str, learner: int) -> Ints:
        """Those of the list that are about a learner, and all merges."""
        if (show, learner) not in self._of_learner:
            listed, process, columns = self._listed[show], process_of(learner), self._columns
            mine = (columns["process"][listed] == process) | (columns["peer"][listed] == process)
            self._of_learner[show, learner] = listed[mine | (columns["kind"][listed] == int(Kind.MERGED))]
        return self._of_learner[show, learner]

    def _relation(self, one: int, event: int, past: Ints, future: Ints) -> str:
        process, rank = self._index.process[one], self._index.rank[one]
        return NOW if one == event else PAST if rank < past[process] else FUTURE if rank >= future[process] else BESIDE

    def _reach(self, process: int, past: int, future: int) -> tuple[int, float, float]:
        reached, ahead = self._reached[process], self._ahead[process]
        return (
            process,
            float(reached[past - 1]) if past > 0 else -np.inf,
            float(ahead[future]) if future < len(ahead) else np.inf,
        )

    def _why(self, event: int) -> tuple[Why | None, str]:
        merge = self.merge_of(event)
        if "why" in self.tape.wb.untold:
            return None, str(self.tape.wb.untold["why"])
        return (None, "") if merge < 0 else (self.tape.wb.why(merge), "")


def _extremes(time_s: Any, rows: list[Ints]) -> tuple[list[Any], list[Any]]:
    """By process: the latest time up to each of its own events, and the earliest from it on [s]."""
    times = [time_s[own] for own in rows]
    return [np.maximum.accumulate(t) for t in times], [np.minimum.accumulate(t[::-1])[::-1] for t in times]
