"""From (process, seq) to the event's index: what turns a record's cause into a row of /events."""

from __future__ import annotations

from typing import Any

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]


class _Run:
    """Events of one process whose seq rises: two sorted arrays that grow."""

    def __init__(self, seqs: Ints, events: Ints) -> None:
        self.count = len(seqs)
        self.seqs, self.events = seqs.copy(), events.copy()

    def extend(self, seqs: Ints, events: Ints) -> None:
        need = self.count + len(seqs)
        if need > len(self.seqs):
            room = np.zeros(max(need, 2 * len(self.seqs)) - self.count, np.int64)
            self.seqs = np.concatenate((self.seqs[: self.count], room))
            self.events = np.concatenate((self.events[: self.count], room))
        self.seqs[self.count : need], self.events[self.count : need] = seqs, events
        self.count = need

    def find(self, seqs: Ints) -> Ints:
        """Event of each seq, -1 where the run lacks it."""
        known = self.seqs[: self.count]
        at = np.minimum(np.searchsorted(known, seqs), self.count - 1)
        return np.where(known[at] == seqs, self.events[at], -1)


class SeqIndex:
    """Index of the events recorded so far.

    A process numbers its records upwards, so searching is bisection.  Should a seq come again (a
    process that lost count), the newest event before the asking one is meant.
    """

    def __init__(self) -> None:
        self._runs: dict[int, list[_Run]] = {}

    def add(self, processes: Ints, seqs: Ints, first_event: int) -> None:
        """Add events ``first_event``, ``first_event + 1``, … in journal order."""
        events = np.arange(first_event, first_event + len(seqs), dtype=np.int64)
        for process in np.unique(processes):
            mine = processes == process
            runs = self._runs.setdefault(int(process), [])
            own_seqs, own_events = seqs[mine], events[mine]
            breaks = np.flatnonzero(np.diff(own_seqs) <= 0) + 1
            for part, numbers in zip(np.split(own_seqs, breaks), np.split(own_events, breaks), strict=True):
                if runs and runs[-1].seqs[runs[-1].count - 1] < part[0]:
                    runs[-1].extend(part, numbers)
                else:
                    runs.append(_Run(part, numbers))

    def find(self, processes: Ints, seqs: Ints, before: Ints) -> Ints:
        """Event of each (process, seq) recorded before event ``before``, -1 where there is none."""
        result = np.full(len(seqs), -1, np.int64)
        for process in np.unique(processes):
            mine = np.flatnonzero(processes == process)
            for run in reversed(self._runs.get(int(process), [])):
                open_ones = mine[result[mine] < 0]
                if not len(open_ones):
                    break
                found = run.find(seqs[open_ones])
                result[open_ones] = np.where(found < before[open_ones], found, -1)
        return result
