"""Learners at a moment, from their own records and what syncer and supervisor recorded of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from workbench.protocol.records import SUPERVISOR, SYNCER, Kind, process_of
from workbench.protocol.rosters import REMOVED
from workbench.tape.event_sets import Ints
from workbench.tape.moment import LearnerThen
from workbench.tape.own_events import OwnEvents, own_events

CORRECTED = "delay_corrected"
"""The rule whose folds leave counters behind."""


class _Course(NamedTuple):
    """Steps of one learner, and its counters just after every fold.

    Attributes
    ----------
    steps, tokens : ndarray
        Places of its steps; tokens up to and with each, after a leading 0.
    after : dict of int to (int, int)
        By place of a fold: steps and tokens that the fragment's counters held after it; others held none.
    """

    steps: Ints
    tokens: Ints
    after: dict[int, tuple[int, int]]


class LearnersThen:
    """Answers for all learners of a tape.

    Parameters
    ----------
    tree : xarray.DataTree
    fragments : int
    """

    def __init__(self, tree: xr.DataTree, fragments: int) -> None:
        self.events: OwnEvents = own_events(tree)
        self.fragments = fragments
        self._courses: dict[int, _Course] = {}
        self._merged = _merged_versions(tree)
        self._initial = self.events.words.index("initial") if "initial" in self.events.words else -1

    def at(self, m: int, stops: Ints, versions: tuple[int, ...], faults: tuple[str, ...]) -> LearnerThen:
        """Learner m when each process had made so many records (process,), and fragments these versions."""
        own, q = self.events, process_of(m)
        stop = int(stops[q]) if q < len(stops) else 0
        adopted = own.last(q, Kind.STATE_ADOPTED, stop, reason=self._initial)
        step = own.last(q, Kind.STEP_ENDED, stop)
        folds = [own.last(q, Kind.UPDATE_FOLDED, stop, fragment=p) for p in range(self.fragments)]
        folds = [place if place > adopted else -1 for place in folds]
        course = self._course(q)
        made = int(np.searchsorted(course.steps, stop))
        counters = [self._counters(course, max(place, adopted), place, made) for place in folds]
        applied = own.last(q, Kind.SETTING_APPLIED, stop)
        merged = [_newest(self._merged, m, p, version) for p, version in enumerate(versions)]
        joined, connected = self._joined(q, int(stops[SYNCER]))
        return LearnerThen(
            learner=m,
            alive=self._is_alive(q, int(stops[SUPERVISOR]), connected),
            connected=connected,
            healed=bool(folds) and min(folds) >= 0 and step > self._first_complete(q, adopted, stop),
            stalled=connected and self._is_stalled(q, stops, joined, step),
            quarantined=self._is_quarantined(q, int(stops[SYNCER])),
            faults=faults,
            process_number=int(own.value("value", SYNCER, joined)) if joined >= 0 else -1,
            incarnation=int(own.value("version", SYNCER, joined)) if joined >= 0 else 0,
            n=max(0, int(own.value("step", q, max(step, adopted)))) if max(step, adopted) >= 0 else 0,
            g=self._global_step(q, adopted, step, folds),
            base=tuple(int(own.value("version", q, place)) if place >= 0 else -1 for place in folds),
            c_steps=tuple(steps for steps, _ in counters),
            c_tokens=tuple(tokens for _, tokens in counters),
            last_merged=tuple(version for version, _ in merged),
            steps=made,
            tokens=int(course.tokens[made]),
            merged=sum(count for _, count in merged),
            loss=float(own.value("value", q, step)) if step >= 0 else float("nan"),
            revision=max(0, int(own.value("setting", q, applied))) if applied > adopted else 0,
            expected=self._is_expected(q, int(stops[SYNCER])),
            removed=self._is_removed(q, int(stops[SYNCER])),
        )

    def _course(self, q: int) -> _Course:
        if q not in self._courses:
            self._courses[q] = _course_of(self.events, q)
        return self._courses[q]

    @staticmethod
    def _counters(course: _Course, since: int, fold: int, made: int) -> tuple[int, int]:
        """Counters of a fragment: what its last fold left, or nothing at the adoption, and the steps since."""
        first = int(np.searchsorted(course.steps, since))
        steps, tokens = course.after.get(fold, (0, 0))
        return steps + made - first, tokens + int(course.tokens[made] - course.tokens[first])

    def _first_complete(self, q: int, adopted: int, stop: int) -> int:
        """Place of the fold with which the last of the fragments had come for the first time in this life."""
        own = self.events
        firsts = []
        for p in range(self.fragments):
            places = own.places(q, Kind.UPDATE_FOLDED, fragment=p)
            at = int(np.searchsorted(places, adopted, "right"))
            firsts.append(int(places[at]) if at < len(places) else stop)
        return max(firsts, default=stop)

    def _global_step(self, q: int, adopted: int, step: int, folds: list[int]) -> int:
        own = self.events
        g = int(own.value("global_step", q, step)) + 1 if step > adopted else 0
        rounds = [int(own.value("round", q, place)) for place in folds if place > step]
        return max([g, *rounds])

    def _joined(self, q: int, stop: int) -> tuple[int, bool]:
        """Place of its last joining in the syncer's events, and whether it is connected."""
        own = self.events
        joined = own.last(SYNCER, Kind.LEARNER_JOINED, stop, peer=q)
        ended = max(own.last(SYNCER, Kind.LEARNER_LOST, stop, peer=q), own.last(SYNCER, Kind.SYNCER_STARTED, stop))
        return joined, joined > ended

    def _is_expected(self, q: int, stop: int) -> bool:
        added = self.events.places(SYNCER, Kind.LEARNER_ADDED, peer=q)
        return not len(added) or int(added[0]) < stop

    def _is_removed(self, q: int, stop: int) -> bool:
        own = self.events
        lost = own.last(SYNCER, Kind.LEARNER_LOST, stop, peer=q)
        return lost >= 0 and own.reason(SYNCER, lost) == REMOVED

    def _is_alive(self, q: int, stop: int, connected: bool) -> bool:
        own = self.events
        started = own.last(SUPERVISOR, Kind.PROCESS_STARTED, stop, peer=q)
        return started > own.last(SUPERVISOR, Kind.PROCESS_ENDED, stop, peer=q) if started >= 0 else connected

    def _is_stalled(self, q: int, stops: Ints, joined: int, step: int) -> bool:
        own = self.events
        stalled = own.last(SYNCER, Kind.LEARNER_STALLED, int(stops[SYNCER]), peer=q)
        if stalled <= joined:
            return False
        return step < 0 or own.event(q, step) < own.event(SYNCER, stalled)

    def _is_quarantined(self, q: int, stop: int) -> bool:
        own = self.events
        place = own.last(SYNCER, Kind.SETTING_CHANGED, stop, peer=q)
        if place < 0:
            return False
        values = own.details(Kind.SETTING_CHANGED).get(own.event(SYNCER, place), {}).get("values", {})
        return bool(values.get("quarantined", False))


def _course_of(own: OwnEvents, q: int) -> _Course:
    steps = own.places(q, Kind.STEP_ENDED)
    rows = own.index.rows[q] if q < len(own.index.rows) else np.zeros(0, np.int64)
    tokens = np.concatenate([[0], np.cumsum(own["tokens"][rows[steps]])])
    numbers = own["step"][rows[steps]]
    corrected = own.words.index(CORRECTED) if CORRECTED in own.words else -2
    folds = own.places(q, Kind.UPDATE_FOLDED, reason=corrected)
    columns = [own[name][rows[folds]].tolist() for name in ("step", "steps", "tokens")]
    references = _references(own.tree) if len(folds) else {}
    after: dict[int, tuple[int, int]] = {}
    for place, n, c_steps, c_tokens in zip(folds.tolist(), *columns, strict=True):
        after[place] = (c_steps, c_tokens)
        reference = references.get(int(rows[place]), -1)
        if reference >= 0:
            upto, since = np.searchsorted(steps, place), np.searchsorted(numbers, reference, "right")
            after[place] = min(c_steps, n - reference), min(c_tokens, int(tokens[upto] - tokens[since]))
    return _Course(steps, tokens, after)


def _references(tree: xr.DataTree) -> dict[int, int]:
    found: dict[int, int] = tree.wb.kept(_reference_of_folds)
    return found


def _reference_of_folds(tree: xr.DataTree) -> dict[int, int]:
    folds = tree["folds"].dataset
    return dict(zip(folds["event"].values.tolist(), folds["reference"].values.tolist(), strict=True))


Merged = dict[tuple[int, int], Ints]
"""Versions of a fragment that hold work of a learner, ascending, by (learner, fragment)."""


def _merged_versions(tree: xr.DataTree) -> Merged:
    rows, merges = tree["contributions"].dataset, tree["merges"].dataset
    merge = rows["merge"].values
    inside = np.flatnonzero(merge >= 0)
    versions = merges["version"].values[merge[inside]]
    learners, fragments = rows["learner"].values[inside], rows["fragment"].values[inside]
    order = np.lexsort((versions, fragments, learners))
    learners, fragments, versions = learners[order], fragments[order], versions[order].astype(np.int64)
    firsts = np.flatnonzero(np.r_[True, (np.diff(learners) != 0) | (np.diff(fragments) != 0)][: len(order)])
    keys = zip(learners[firsts].tolist(), fragments[firsts].tolist(), strict=True)
    return dict(zip(keys, np.split(versions, firsts[1:]), strict=True)) if len(order) else {}


def _newest(merged: Merged, m: int, p: int, version: int) -> tuple[int, int]:
    """The newest version up to one that holds work of a learner, -1 for none, and how many do."""
    own = merged.get((m, p))
    count = 0 if own is None else int(np.searchsorted(own, version, "right"))
    return (int(own[count - 1]) if own is not None and count else -1), count
