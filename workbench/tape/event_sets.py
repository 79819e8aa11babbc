"""Sets of events that are a range of each process's own events: pasts, futures, cuts, and what lies between."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.protocol.records import label_of

Ints = np.ndarray[Any, np.dtype[np.int64]]


class EventSet:
    """Events of a tape, held as one range for each process.

    Parameters
    ----------
    what : str
        For people: ``past of event 41``.
    rows : list of ndarray
        Events of each process, ascending.
    starts, stops : ndarray (process,)
        Ranges of the processes' own events; equal where there are none.

    Attributes
    ----------
    starts, stops : ndarray (process,)
    """

    def __init__(self, what: str, rows: list[Ints], starts: Ints, stops: Ints) -> None:
        self.what = what
        self._rows = rows
        self.starts, self.stops = starts, np.maximum(starts, stops)

    def __len__(self) -> int:
        return int((self.stops - self.starts).sum())

    def __contains__(self, event: object) -> bool:
        if not isinstance(event, int | np.integer):
            return False
        return any(int(at) < len(own) and own[at] == event for own, at in self._places(event))

    def _places(self, event: Any) -> list[tuple[Ints, Any]]:
        parts = [self._of(q) for q in range(len(self._rows))]
        return [(own, np.searchsorted(own, event)) for own in parts]

    def _of(self, q: int) -> Ints:
        return self._rows[q][self.starts[q] : self.stops[q]]

    @property
    def lengths(self) -> dict[str, int]:
        """Events of each process that has some, by its label."""
        sizes = (self.stops - self.starts).tolist()
        return {label_of(q): size for q, size in enumerate(sizes) if size}

    @property
    def first(self) -> int:
        """The first event in journal order, -1 for none."""
        heads = [int(own[0]) for own in (self._of(q) for q in range(len(self._rows))) if len(own)]
        return min(heads, default=-1)

    def events(self) -> Ints:
        """Indices of the events (event,), ascending."""
        parts = [self._of(q) for q in range(len(self._rows))]
        return np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))

    def mask(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of all events of the tape (event,) are in the set."""
        found = np.zeros(sum(map(len, self._rows)), bool)
        for q in range(len(self._rows)):
            found[self._of(q)] = True
        return found

    def __repr__(self) -> str:
        total = sum(map(len, self._rows))
        by_process = ", ".join(f"{label} {count:,}" for label, count in self.lengths.items())
        return f"<{self.what}: {len(self):,} of {total:,} events{': ' if by_process else ''}{by_process}>"


class Cut(EventSet):
    """A consistent cut: a prefix of every process that holds the causes of all that it holds.

    Attributes
    ----------
    left_out : EventSet
        What was asked for, or recorded before, and is not in it.
    """

    def __init__(self, what: str, rows: list[Ints], starts: Ints, stops: Ints, left_out: EventSet) -> None:
        super().__init__(what, rows, starts, stops)
        self.left_out = left_out

    def __repr__(self) -> str:
        left = self.left_out.lengths
        words = ", ".join(f"{label} {count:,}" for label, count in left.items())
        return f"{super().__repr__()[:-1]}{f'; left out {words}' if words else ''}>"
