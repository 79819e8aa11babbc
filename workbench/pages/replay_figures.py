"""Figures of a tape with a cursor: lanes around it, with its causal past and future, and courses of the whole run."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
from bokeh.models import ColumnDataSource
from bokeh.models.annotations import Span

from workbench import views
from workbench.pages.recording import Recording
from workbench.pages.replay_drawing import COURSES, OVER_TIME
from workbench.protocol.records import FIRST_LEARNER, SYNCER
from workbench.views import frame
from workbench.views.palette import BLUE, GREEN, theme_of

LANES_S = 10.0
"""Of the run that the lanes show at once [s]."""
EDGE = 0.1
"""Part of that at each end where the cursor makes the lanes move on."""
__all__ = ["Course", "Lanes", "cursor", "frame"]  # the import of frame loads the backend


class Course:
    """One figure of the whole run.  Waits: drawing takes up to seconds.

    Parameters
    ----------
    recording : Recording
    name : str
        One of `COURSES`.
    theme : str

    Attributes
    ----------
    figure : bokeh figure
    """

    def __init__(self, recording: Recording, name: str, theme: str) -> None:
        options: dict[str, Any] = {"height": 230, "theme": theme, **COURSES[name]}
        self.figure = hv.render(getattr(views, name)(recording.tape, **options), backend="bokeh")
        if not self.figure.right:
            self.figure.min_border_right = 16
        self._cursor = cursor(self.figure, theme) if name in OVER_TIME else None

    def move(self, time_s: float) -> None:
        """Put the cursor somewhere else."""
        if self._cursor is not None:
            self._cursor.location = time_s


class Lanes:
    """Lanes of the processes around a time, and who knows of whom at the cursor.  Waits, as `Course`.

    Attributes
    ----------
    figure : bokeh figure
    low, high : float
        What is shown [s from the start of rounds].
    """

    def __init__(self, recording: Recording, time_s: float, theme: str) -> None:
        last = float(recording.time_s.max(initial=0.0))
        self.low = max(0.0, min(time_s - LANES_S / 2, last - LANES_S))
        self.high = min(self.low + LANES_S, max(last, self.low + 1.0))
        self._last = last
        lanes = views.swimlanes(recording.tape, start_s=self.low, end_s=self.high, theme=theme)
        self.figure = hv.render(lanes, backend="bokeh")
        self._count = len(recording.tape.wb.learners) + 1
        self._ground = ColumnDataSource({name: [] for name in ("left", "right", "low", "high", "colour")})
        self.figure.quad(
            left="left", right="right", bottom="low", top="high", source=self._ground, fill_color="colour",
            fill_alpha=0.16, line_alpha=0, level="underlay",
        )  # fmt: skip
        self._cursor = cursor(self.figure, theme)

    def hold(self, time_s: float) -> bool:
        """Whether the cursor may stand there without lanes being drawn anew."""
        room = EDGE * (self.high - self.low)
        after = self.low + room <= time_s or self.low <= 0.0
        before = time_s <= self.high - room or self.high >= self._last
        return after and before

    def move(self, time_s: float, reaches: list[tuple[int, float, float]]) -> None:
        """Put the cursor somewhere else."""
        self._cursor.location = time_s
        ground: dict[str, list[Any]] = {name: [] for name in ("left", "right", "low", "high", "colour")}
        for process, past_s, future_s in reaches:
            if process != SYNCER and process < FIRST_LEARNER:
                continue
            lane = self._count - 1 - (0 if process == SYNCER else process - FIRST_LEARNER + 1)
            for left, right, colour in ((self.low, past_s, BLUE), (future_s, self.high, GREEN)):
                left, right = float(np.clip(left, self.low, self.high)), float(np.clip(right, self.low, self.high))
                if right > left:
                    row = {"left": left, "right": right, "low": lane - 0.48, "high": lane + 0.48, "colour": colour}
                    for name, value in row.items():
                        ground[name].append(value)
        self._ground.data = ground


def cursor(figure: Any, theme: str) -> Span:
    """A vertical line that moves."""
    span = Span(location=0.0, dimension="height", line_color=theme_of(theme).text, line_width=1.5, line_dash="solid")
    figure.add_layout(span)
    return span
