"""Events of each process by kind: where the last one before a place is, by bisection."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from workbench.protocol.records import SYNCER, Kind
from workbench.tape.causal_order import index_of
from workbench.tape.event_sets import Ints
from workbench.tape.origin import origin_ns
from workbench.tape.restore import Details, details_of_events


class OwnEvents:
    """Columns of a tape, and the places of each kind of event among its process's own.

    Parameters
    ----------
    tree : xarray.DataTree
    """

    def __init__(self, tree: xr.DataTree) -> None:
        self.tree = tree
        self.index = index_of(tree)
        self.words = [*tree.attrs["words"], ""]
        self._columns: dict[str, np.ndarray[Any, Any]] = {}
        self._places: dict[tuple[Any, ...], Ints] = {}
        self._details: dict[Kind, dict[int, dict[str, Any]]] = {}
        self._by_round: tuple[Ints, Ints] | None = None
        self._detailed: Details | None = None

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self._columns:
            self._columns[name] = self.tree["events"].dataset[name].values
        return self._columns[name]

    @cached_property
    def began_ns(self) -> int:
        """See `workbench.tape.origin.origin_ns`."""
        return origin_ns(self["kind"], self["time_ns"])

    def places(self, q: int, kind: Kind, **equal: int) -> Ints:
        """Places, among the events of process ``q``, of those of a kind whose columns have these values."""
        key = (q, kind, *sorted(equal.items()))
        if key not in self._places:
            if q >= len(self.index.rows):
                return np.zeros(0, np.int64)
            if equal:
                (name, value), *rest = equal.items()
                found = self.places(q, kind, **dict(rest))
                keep = self[name][self.index.rows[q][found]] == value
                self._places[key] = found[keep]
            else:
                self._places[key] = np.flatnonzero(self["kind"][self.index.rows[q]] == kind)
        return self._places[key]

    def last(self, q: int, kind: Kind, stop: int, **equal: int) -> int:
        """Place of the last such event before place ``stop``, -1 for none."""
        places = self.places(q, kind, **equal)
        at = int(np.searchsorted(places, stop))
        return int(places[at - 1]) if at else -1

    def count(self, q: int, kind: Kind, stop: int, **equal: int) -> int:
        """How many such events there are before place ``stop``."""
        return int(np.searchsorted(self.places(q, kind, **equal), stop))

    def event(self, q: int, place: int) -> int:
        """Event at a place."""
        return int(self.index.rows[q][place])

    def value(self, name: str, q: int, place: int) -> Any:
        """Value of a column at a place."""
        return self[name][self.index.rows[q][place]].item()

    def reason(self, q: int, place: int) -> str:
        """Reason at a place, as a word."""
        return str(self.words[self.value("reason", q, place)])

    def of_round(self, round_: int) -> Ints:
        """Events of the syncer that name a round, ascending."""
        if self._by_round is None:
            rows = self.index.rows[SYNCER]
            rounds = self["round"][rows]
            order = np.argsort(rounds, kind="stable")
            self._by_round = rows[order], rounds[order]
        rows, rounds = self._by_round
        return rows[np.searchsorted(rounds, round_) : np.searchsorted(rounds, round_, "right")]

    def detail(self, event: int) -> dict[str, Any]:
        """What one event has beyond its columns."""
        if self._detailed is None:
            self._detailed = Details(self.tree)
        return self._detailed.of(event)

    def details(self, kind: Kind) -> dict[int, dict[str, Any]]:
        """What the events of a kind have beyond their columns, by event."""
        if kind not in self._details:
            self._details[kind] = details_of_events(self.tree, np.flatnonzero(self["kind"] == kind))
        return self._details[kind]


def own_events(tree: xr.DataTree) -> OwnEvents:
    """The events of a tape by process and kind; what was read once is kept."""
    events: OwnEvents = tree.wb.kept(OwnEvents)
    return events
