"""``tree.wb.at``: the state of every process at any event, without arithmetic (DESIGN section 3, *scrub*).

Everything is found by bisection in the records of each process; what is built for it at the first call is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from workbench.algorithms.schedule import offsets
from workbench.config import RunConfig, from_toml
from workbench.protocol.records import EVALUATOR, SUPERVISOR, SYNCER, Kind, process_of
from workbench.protocol.settings import SettingsBook, fixed_settings_of, settings_book_of
from workbench.tape.errors import TapeError
from workbench.tape.event_sets import Ints
from workbench.tape.ledger_course import totals_at
from workbench.tape.moment import Moment
from workbench.tape.own_events import own_events
from workbench.tape.scrub_learners import LearnersThen
from workbench.tape.scrub_rounds import RoundsThen

__all__ = ["at"]


def at(tree: xr.DataTree, event: int | None = None, time_s: float | None = None) -> Moment:
    """The state of every process just after an event was recorded.

    Parameters
    ----------
    tree : xarray.DataTree
    event : int, optional
        Index in /events; negative counts from the end.
    time_s : float, optional
        Instead of an event: the last one that was recorded by this time of the syncer [s from the start of rounds].

    Raises
    ------
    TapeError
        Unless exactly one of both is given, or where there is no such event.
    """
    scrubber: Scrubber = tree.wb.kept(Scrubber)
    if (event is None) == (time_s is None):
        raise TapeError("a moment is one event or one time; type at(41), at(event=-1) or at(time_s=12.5)")
    return scrubber.at(scrubber.index.checked(event) if event is not None else scrubber.event_at(float(time_s or 0.0)))


class Scrubber:
    """What `at` asks.

    Parameters
    ----------
    tree : xarray.DataTree
    """

    def __init__(self, tree: xr.DataTree) -> None:
        self.tree = tree
        self.events = own_events(tree)
        self.index = self.events.index
        self.config: RunConfig | None = from_toml(tree.attrs["config"]) if tree.attrs.get("config") else None
        named = int(self.events["fragment"].max(initial=-1)) + 1
        self.fragments = self.config.fragments if self.config is not None else named
        self.learners = LearnersThen(tree, self.fragments)
        self.rounds = RoundsThen(self.events)
        self.learner_ids = tree.wb.learners
        if self.index.count:
            self.at(self.index.count - 1)  # reads every column and sorts every kind, once

    def event_at(self, time_s: float) -> int:
        """The last event before the first record that the syncer made after a time from the start of rounds."""
        at_ns = self.events.began_ns + round(time_s * 1e9)
        stop = int(np.searchsorted(self.index.times[SYNCER], at_ns, "right")) if self.index.count else 0
        if not stop:
            raise TapeError(
                f"nothing was recorded by {time_s:g} s from the start of rounds; type a later time, at(0) is the first "
                "event"
            )
        later = stop < self.index.lengths[SYNCER]
        return int(self.index.rows[SYNCER][stop]) - 1 if later else self.index.count - 1

    def at(self, event: int) -> Moment:
        """The state just after an event."""
        own = self.events
        stops = self._stops(event)
        stop = int(stops[SYNCER])
        last = own.event(SYNCER, stop - 1) if stop else event
        versions = tuple(self._version(p, stop) for p in range(self.fragments))
        faults = self._faults(int(stops[SUPERVISOR]), int(own["time_ns"][: event + 1][-1]))
        ended = own.last(SYNCER, Kind.RUN_ENDED, stop)
        book, settings = self._settings(stop)
        return Moment(
            event=event,
            time_s=(int(own["time_ns"][last]) - own.began_ns) * 1e-9,
            recorded=self.index.event_set(f"recorded up to event {event}", np.zeros_like(stops), stops),
            syncer_starts=own.count(SYNCER, Kind.SYNCER_STARTED, stop),
            began=own.last(SYNCER, Kind.ROUNDS_BEGAN, stop) >= 0,
            ended=own.reason(SYNCER, ended) if ended >= 0 else "",
            versions=versions,
            merges=own.count(SYNCER, Kind.MERGE_COMMITTED, stop),
            rounds=self.rounds.at(stop),
            learners=tuple(
                self.learners.at(m, stops, versions, faults.get(process_of(m), ())) for m in self.learner_ids
            ),
            quorum_lost=own.last(SYNCER, Kind.QUORUM_LOST, stop) > own.last(SYNCER, Kind.QUORUM_REGAINED, stop),
            revision=book.revision if book is not None else 0,
            settings=settings,
            validation=self._validation(int(stops[EVALUATOR])),
            _ledger=lambda event: totals_at(self.tree, event),
        )

    def _stops(self, event: int) -> Ints:
        """How many records each process had made; the first three processes are always there."""
        stops = self.index.recorded_before(event + 1)
        return np.concatenate([stops, np.zeros(max(0, EVALUATOR + 1 - len(stops)), np.int64)])

    def _version(self, p: int, stop: int) -> int:
        place = self.events.last(SYNCER, Kind.MERGE_COMMITTED, stop, fragment=p)
        return int(self.events.value("version", SYNCER, place)) if place >= 0 else 0

    def _validation(self, stop: int) -> tuple[int, float] | None:
        place = self.events.last(EVALUATOR, Kind.EVALUATED, stop)
        if place < 0:
            return None
        return int(self.events.value("steps", EVALUATOR, place)), float(self.events.value("value", EVALUATOR, place))

    def _faults(self, stop: int, now_ns: int) -> dict[int, tuple[str, ...]]:
        """Kinds of the faults that act on each process: begun with an effect, not ended, and not over by now."""
        own, found = self.events, dict[int, tuple[str, ...]]()
        begun, over = own.details(Kind.FAULT_INJECTED), own.details(Kind.FAULT_ENDED)
        places = own.places(SUPERVISOR, Kind.FAULT_INJECTED)
        ended = own.places(SUPERVISOR, Kind.FAULT_ENDED)
        numbers = {over.get(own.event(SUPERVISOR, place), {}).get("fault") for place in ended[ended < stop].tolist()}
        for place in places[places < stop].tolist():
            detail = begun.get(own.event(SUPERVISOR, place), {})
            until = int(detail.get("until_ns", 0))
            if detail.get("effect", 1) and detail.get("fault", -1) not in numbers and (until < 0 or until > now_ns):
                process = int(own.value("peer", SUPERVISOR, place))
                found[process] = (*found.get(process, ()), own.reason(SUPERVISOR, place))
        return found

    def _settings(self, stop: int) -> tuple[SettingsBook | None, dict[str, Any]]:
        """The settings in force, with every change up to now applied."""
        if self.config is None:
            return None, {}
        own, config = self.events, self.config
        book, fixed = settings_book_of(config), fixed_settings_of(config, offsets(config.fragments, config.period))
        details = own.details(Kind.SETTING_CHANGED)
        places = own.places(SYNCER, Kind.SETTING_CHANGED)
        for place in places[places < stop].tolist():
            values = details.get(own.event(SYNCER, place), {}).get("values", {})
            if "quarantined" not in values:
                book.apply(values, fixed)
        return book, book.in_force()
