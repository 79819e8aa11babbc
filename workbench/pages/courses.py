"""The course of the loss of a run that goes on: all of it, in as many points as a page can draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

POINTS_MAX = 3000
"""Of more every second one is left out; the band between least and most keeps what it showed."""
RECORDED_MAX = 400


class Point(NamedTuple):
    """The loss at one moment.

    Attributes
    ----------
    time_s : float
        Since the run began [s].
    loss : float
        Mean over the learners of the loss of their last step, or a validation loss [nat per byte].
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
        Of training, one for each look at the run.
    evaluations : list of Point
    changes : int
        How often the points were thinned or begun anew: who drew them before draws all of them again.
    """

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.evaluations: list[Point] = []
        self.changes = 0

    def begin(self, recorded: Sequence[tuple[Point, bool]]) -> None:
        """Take what a tape knows of the time before: points, and whether each is an evaluation."""
        training = [point for point, evaluated in recorded if not evaluated]
        first = self.points[0].time_s if self.points else float("inf")
        self.points = [point for point in training if point.time_s < first] + self.points
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
            self.points.append(Point(status["elapsed_s"], sum(losses) / len(losses), min(losses), max(losses)))
        if len(self.points) > POINTS_MAX:
            self.points = [_joined(*pair) for pair in zip(self.points[::2], self.points[1::2], strict=False)]
            self.changes += 1

    def evaluated(self, point: Point) -> None:
        """Take a validation loss."""
        self.evaluations.append(point)


def _joined(a: Point, b: Point) -> Point:
    return Point(b.time_s, (a.loss + b.loss) / 2, min(a.least, b.least), max(a.most, b.most))


def recorded_points(tape: xr.DataTree) -> list[tuple[Point, bool]]:
    """What a tape knows: losses of steps in at most `RECORDED_MAX` bins, and evaluations (marked True)."""
    steps, events = tape["steps"].dataset, tape["events"].dataset
    ended_s, loss = steps["end_ns"].values / 1e9, steps["loss"].values.astype(float)
    found: list[tuple[Point, bool]] = []
    good = np.isfinite(loss)
    if good.any():
        ended_s, loss = ended_s[good], loss[good]
        order = np.argsort(ended_s, kind="stable")
        for part in np.array_split(order, min(RECORDED_MAX, len(order))):
            of = loss[part]
            point = Point(float(ended_s[part[-1]]), float(of.mean()), float(of.min()), float(of.max()))
            found.append((point, False))
    evals = tape["evals"].dataset
    at_s = events["time_ns"].values[evals["event"].values] / 1e9
    pairs = zip(at_s.tolist(), evals["loss"].values.tolist(), strict=True)
    return found + [(Point(time_s, value), True) for time_s, value in pairs]
