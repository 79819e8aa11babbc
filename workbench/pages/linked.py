"""Several tapes with one cursor: a place on a common axis, and the event of each run there."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.analysis.comparing.comparison import Comparison, compare
from workbench.analysis.timelines import Timeline
from workbench.pages.overview import Overview, overview
from workbench.pages.recording import Recording

AXES = ("wall", "tokens", "rounds")
"""Axes on which unrelated runs can be laid beside each other."""
OF_CURVES = {"wall": "time_s", "tokens": "tokens_processed", "rounds": "rounds"}
"""The same axes, of the curves of a comparison."""


class Linked:
    """Parameters
    ----------
    names : sequence of str
        As in addresses; the first run is what the others are compared with.
    recordings : sequence of Recording

    Attributes
    ----------
    letters : list of str
        A, B, …: short names.
    found : Comparison

    Raises
    ------
    ConfigError
        Fewer than two runs, or more than six.
    """

    def __init__(self, names: Sequence[str], recordings: Sequence[Recording]) -> None:
        self.names, self.recordings = list(names), list(recordings)
        self.letters = [chr(ord("A") + number) for number in range(len(self.names))]
        self.found: Comparison = compare(*(one.tape for one in recordings))

    def _timelines(self, axis: str) -> list[Timeline]:
        return [one.timeline(axis) for one in self.recordings]

    def range(self, axis: str) -> tuple[float, float]:
        """From the earliest start to the latest end of any run."""
        lines = self._timelines(axis)
        return min(one.low for one in lines), max(one.high for one in lines)

    def value(self, axis: str, part: float) -> float:
        """A place on the axis, from 0 to 1."""
        low, high = self.range(axis)
        return low + part * (high - low)

    def text(self, axis: str, value: float) -> str:
        """The same for people."""
        return self._timelines(axis)[0].text(value)

    def events(self, axis: str, value: float) -> list[int]:
        """The last event of each run up to a place."""
        return [one.event_at(one.part_of(value)) for one in self._timelines(axis)]

    def over(self, axis: str, value: float) -> list[bool]:
        """Which runs have ended by then."""
        return [value > one.high for one in self._timelines(axis)]

    def strip(self, axis: str) -> Overview:
        """The first run in small, on the axis of all."""
        own, line = overview(self.recordings[0], axis), self._timelines(axis)[0]
        low, high = self.range(axis)

        def moved(x: float) -> float:
            return (line.low + x * (line.high - line.low) - low) / (high - low)

        marks = [{**mark, "x": moved(mark["x"]), "to": moved(mark["to"])} for mark in own.marks]
        points = [(moved(x), y) for x, y in own.line]
        return Overview(marks, points, line.text(low), line.text(high), f"A: {own.legend}")
