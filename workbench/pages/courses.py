"""The course of the loss of a run that goes on: all of it, in as many points as a page can draw."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile, pairwise
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from workbench.analysis.arrays.presence import Presence, presences
from workbench.analysis.arrays.tables import Array, Tables
from workbench.analysis.from_tape import tables_of

POINTS_MAX = 3000
"""Of more every second one is left out; the band between least and most keeps what it showed."""
RECORDED_MAX = 400
LOOKED_S = 0.2
"""Between two looks at a run."""
HOLE_S = 2.0
"""Without a loss for longer there is a hole in the line."""


Span = tuple[float, float]
"""From when to when, since the run began [s]."""


class Point(NamedTuple):
    """The loss at one moment.

    Attributes
    ----------
    time_s : float
        Since the run began [s].
    loss : float
        Mean over the learners of the loss of their last step, or a validation loss [nat per byte]; NaN: unknown.
    least, most : float
        Over the learners.
    """

    time_s: float
    loss: float
    least: float = float("nan")
    most: float = float("nan")


class Course:
    """Attributes
    ----------
    points : list of Point
        Of training, one for each look at the run; where nobody told a loss for a while, two that bound a hole.
    evaluations : list of Point
    changes : int
        How often the points were thinned or begun anew: who drew them before draws all of them again.
    """

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.evaluations: list[Point] = []
        self.changes = 0
        self._first_s = float("inf")
        self._apart_s = HOLE_S
        self._asked: set[Span] = set()

    def begin(self, recorded: Sequence[tuple[Point, bool]]) -> None:
        """Take what a tape knows of the time before the first look: points, and whether each is an evaluation."""
        training = [point for point, evaluated in recorded if not evaluated and point.time_s < self._first_s]
        looked = list(dropwhile(lambda p: p.time_s < self._first_s or np.isnan(p.loss), self.points))
        self._apart_s = max([self._apart_s, *(2 * (b.time_s - a.time_s) for a, b in pairwise(training[:2]))])
        self.points = training
        for point in looked:
            self._take(point)
        known = {point.time_s for point in self.evaluations}
        more = [point for point, evaluated in recorded if evaluated and point.time_s not in known]
        self.evaluations = sorted([*more, *self.evaluations])
        self.changes += 1

    def look(self, status: dict[str, Any]) -> None:
        """Take the losses of a status."""
        losses = [
            one["loss"] for one in status["learners"]
            if one.get("loss") is not None and one.get("connected") and np.isfinite(one["loss"])
        ]  # fmt: skip
        if losses:
            self._first_s = min(self._first_s, status["elapsed_s"])
            self._take(Point(status["elapsed_s"], sum(losses) / len(losses), min(losses), max(losses)), HOLE_S)
        if len(self.points) > POINTS_MAX:
            self.points, self._apart_s = _thinned(self.points), 2 * self._apart_s
            self.changes += 1

    def _take(self, point: Point, apart_s: float = 0.0) -> None:
        last = self.points[-1] if self.points else point
        if (
            np.isfinite(last.loss)
            and np.isfinite(point.loss)
            and point.time_s - last.time_s > (apart_s or self._apart_s)
        ):
            self.points += _hole(last, point)
        self.points.append(point)

    def holes(self) -> list[Span]:
        """From when to when nobody told a loss, each told once: a tape may know more."""
        found = [
            (a.time_s, b.time_s)
            for a, b in pairwise(self.points)
            if np.isnan(a.loss) and np.isnan(b.loss) and a.time_s < b.time_s
        ]
        new = [span for span in found if span not in self._asked]
        self._asked = set(found)
        return new

    def fill(self, recorded: Sequence[Point]) -> None:
        """Take what a tape knows of the time in holes."""
        points, self.points = self.points, []
        for at, point in enumerate(points):
            if np.isfinite(point.loss):
                self._take(point)
            elif at + 1 < len(points) and np.isnan(points[at + 1].loss):
                for one in recorded:
                    if point.time_s < one.time_s < points[at + 1].time_s:
                        self._take(one)
        self.changes += 1

    def evaluated(self, point: Point) -> None:
        """Take a validation loss."""
        self.evaluations.append(point)


def _hole(before: Point, after: Point) -> list[Point]:
    """What bounds a hole: no loss, and a band without width, so that neither line nor band crosses it."""
    return [Point(one.time_s, float("nan"), one.loss, one.loss) for one in (before, after)]


def _thinned(points: Sequence[Point]) -> list[Point]:
    """Every two neighbours as one; holes stay."""
    found: list[Point] = []
    waiting: Point | None = None
    for point in points:
        whole = np.isfinite(point.loss)
        if waiting is not None and whole:
            found.append(_joined(waiting, point))
            waiting = None
        elif whole:
            waiting = point
        else:
            found += [waiting, point] if waiting is not None else [point]
            waiting = None
    return found if waiting is None else [*found, waiting]


def _joined(a: Point, b: Point) -> Point:
    return Point(b.time_s, (a.loss + b.loss) / 2, min(a.least, b.least), max(a.most, b.most))


def recorded_points(tape: xr.DataTree) -> list[tuple[Point, bool]]:
    """What a tape knows: training at up to `RECORDED_MAX` times as looks would have found it, evaluations (True)."""
    tables = tables_of(tape)
    found = [(point, False) for point in _training(tables)]
    events, evals = tape["events"].dataset, tape["evals"].dataset
    at_s = events["time_ns"].values[evals["event"].values] / 1e9
    pairs = zip(at_s.tolist(), evals["loss"].values.tolist(), strict=True)
    return found + [(Point(time_s, value), True) for time_s, value in pairs]


def recorded_within(tape: xr.DataTree, spans: Sequence[Span]) -> list[Point]:
    """What a tape knows of training in some spans of time, as looks would have found it."""
    tables = tables_of(tape)
    ended = tables["steps"]["end_ns"] * 1e-9
    last = float(ended.max(initial=0.0))
    found = [_within(tables, low, min(high, last)) for low, high in spans]
    return [point for points in found for point in points if np.isfinite(point.loss)]


def _training(tables: Tables) -> list[Point]:
    """The loss of the last step of each learner, over those that were connected, time after time."""
    ended = tables["steps"]["end_ns"] * 1e-9
    return _within(tables, float(ended.min()), float(ended.max())) if len(ended) else []


def _within(tables: Tables, low: float, high: float) -> list[Point]:
    if high < low:
        return []
    times = np.linspace(low, high, int(np.clip((high - low) / LOOKED_S, 1, RECORDED_MAX - 1)) + 1)
    losses = np.array([_last_losses(tables, m, one, times) for m, one in enumerate(presences(tables))])
    points: list[Point] = []
    before: Point | None = None
    for time_s, found in zip(times.tolist(), losses.T, strict=True):
        there = found[np.isfinite(found)]
        if not len(there):
            continue
        point = Point(time_s, float(there.mean()), float(there.min()), float(there.max()))
        if before is not None and time_s - before.time_s > max(HOLE_S, 1.5 * (times[1] - times[0])):
            points += _hole(before, point)
        points.append(point)
        before = point
    return points


def _last_losses(tables: Tables, learner: int, presence: Presence, times: Array) -> Array:
    """Loss of a learner's last step at each time (time,); NaN while it was not connected."""
    steps = tables["steps"]
    mine = np.flatnonzero((steps["learner"] == learner) & np.isfinite(steps["loss"]))
    mine = mine[np.argsort(steps["end_ns"][mine], kind="stable")]
    last = np.searchsorted(steps["end_ns"][mine] * 1e-9, times, "right") - 1
    spans = presence.connected * 1e-9
    inside = ((times[:, None] >= spans[:, 0]) & (times[:, None] <= spans[:, 1])).any(1)
    known = inside & (last >= 0)
    found = np.full(len(times), np.nan)
    found[known] = steps["loss"][mine][last[known]]
    return found
