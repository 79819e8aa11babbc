"""Lanes as a picture of plain shapes: what `workbench.views.swimlanes` shows, for papers and other programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.analysis.arrays.tables import Array, Tables, events_of, since_began
from workbench.protocol.records import SYNCER, Kind
from workbench.tape.schema import DROPPED
from workbench.views.arrows import ARROWS_MAX, contribution_ends
from workbench.views.drawing import Box, Picture, Shape, Stroke, Text
from workbench.views.lanes import HALF, ROUNDS_MAX, Window
from workbench.views.palette import ORANGE, PURPLE, QUIET, VERMILLION
from workbench.views.sources import Band

LANE, LEFT, HEAD, FOOT, RIGHT = 26, 62, 34, 66, 14
WIDTH = 1000
TICKS = 8


class _Paper:
    """Places of times and lanes on a picture [pixels]."""

    def __init__(self, window: Window, width: int) -> None:
        self.window, self.width, self.height = window, width, HEAD + LANE * window.lanes + FOOT
        self.scale = (width - LEFT - RIGHT) / (window.high - window.low)

    def x(self, time_s: float) -> float:
        return LEFT + (min(max(time_s, self.window.low), self.window.high) - self.window.low) * self.scale

    def y(self, lane: float) -> float:
        return HEAD + LANE * (self.window.lanes - 0.5 - lane)

    def box(self, low: float, high: float, lane: float, half: float, fill: str, **more: object) -> Box:
        x, least = self.x(low), 1.0
        return Box(x, self.y(lane + half), max(self.x(high) - x, least), 2 * half * LANE, fill, **more)  # type: ignore[arg-type]


def lanes_picture(found: Tables, struck: Sequence[Band], window: Window, title: str, width: int = WIDTH) -> Picture:
    """Draw lanes.

    Parameters
    ----------
    found : Tables
    struck : sequence of Band
        Faults in the window.
    window : Window
    title : str
    width : int
        [pixels]
    """
    paper, theme = _Paper(window, width), window.theme
    shapes: list[Shape] = [Text(8, 22, title, theme.text, 13, bold=True)]
    shapes += _frame(paper)
    shapes += [
        paper.box(one.start_s, one.end_s, window.lane(one.process), 0.48, VERMILLION, opacity=0.3, said=one.name)
        for one in struck
    ]
    shapes += [*_steps(found, paper), *_rounds(found, paper), *_late(found, paper), *_arrows(found, paper)]
    shapes += [
        Text(paper.x(one.start_s) + 2, paper.y(window.lane(one.process)) + 4, one.name.rpartition(" ")[0],
             theme.text, 10.5, bold=True)
        for one in struck
    ]  # fmt: skip
    return Picture(width, paper.height, theme.ground, [*shapes, *_legend(paper)], title)


def _frame(paper: _Paper) -> list[Shape]:
    window, theme = paper.window, paper.window.theme
    names = ["syncer", *(f"L{m}" for m in window.learners)]
    bottom = HEAD + LANE * window.lanes
    shapes: list[Shape] = []
    for row, name in enumerate(names):
        lane = window.lanes - 1 - row
        if row % 2:
            shapes.append(Box(LEFT, HEAD + LANE * row, paper.width - LEFT - RIGHT, LANE, theme.grid, opacity=0.5))
        shapes.append(Text(LEFT - 6, paper.y(lane) + 4, name, theme.text, 12, anchor="end"))
    step = _round_step((window.high - window.low) / TICKS)
    for tick in np.arange(np.ceil(window.low / step) * step, window.high + step * 1e-9, step).tolist():
        x = paper.x(tick)
        shapes += [
            Stroke(((x, HEAD), (x, bottom + 4)), theme.grid),
            Text(x, bottom + 18, f"{tick:g}" if abs(tick) > 1e-9 else "0", theme.text, 11, anchor="middle"),
        ]
    middle = LEFT + (paper.width - LEFT - RIGHT) / 2
    shapes.append(Text(middle, bottom + 36, "time since the start of rounds [s]", theme.text, 11, anchor="middle"))
    return [*shapes, Box(LEFT, HEAD, paper.width - LEFT - RIGHT, LANE * window.lanes, line=theme.faint)]


def _round_step(least: float) -> float:
    """The next of 1, 2, 5, 10, … times a power of ten."""
    power = 10.0 ** np.floor(np.log10(least))
    return float(next(power * one for one in (1, 2, 5, 10) if power * one >= least * 0.999))


def _steps(found: Tables, paper: _Paper) -> list[Shape]:
    """Steps; those that no pixel parts are one box."""
    window, steps = paper.window, found["steps"]
    shapes: list[Shape] = []
    for learner in window.learners:
        mine = np.flatnonzero((steps["learner"] == learner) & window.touches(found, steps["start_ns"], steps["end_ns"]))
        mine = mine[np.argsort(steps["start_ns"][mine], kind="stable")]
        low, high = (since_began(found, steps[name][mine]) for name in ("start_ns", "end_ns"))
        lane = window.lanes_of(np.array([learner]))[0]
        for first, last in _joined(low, high, 0.75 / paper.scale):
            said = "step" if last == first else f"{last - first + 1} steps"
            shapes.append(paper.box(low[first], high[first : last + 1].max(), lane, HALF, window.theme.lines[0],
                                    said=f"L{learner}: {said}"))  # fmt: skip
        injected = np.flatnonzero(steps["injected_ns"][mine] > 0)
        shapes += [
            paper.box(high[i] - steps["injected_ns"][mine[i]] * 1e-9, high[i], lane, HALF, PURPLE, said="injected")
            for i in injected.tolist()
        ]
    return shapes


def _joined(low: Array, high: Array, gap: float) -> list[tuple[int, int]]:
    """First and last of each stretch without a gap."""
    if not len(low):
        return []
    begins = np.r_[0, np.flatnonzero(low[1:] - np.maximum.accumulate(high)[:-1] > gap) + 1]
    return list(zip(begins.tolist(), [*(begins[1:] - 1).tolist(), len(low) - 1], strict=True))


def _rounds(found: Tables, paper: _Paper) -> list[Shape]:
    window, events = paper.window, found["events"]
    opened, merged = (
        since_began(found, events["time_ns"][rows])
        for rows in (events_of(found, Kind.ROUND_OPENED), found["merges"]["event"])
    )
    opened, merged = (times[(times >= window.low) & (times <= window.high)] for times in (opened, merged))
    foot = HEAD + LANE * window.lanes
    shapes: list[Shape] = []
    if len(opened) <= ROUNDS_MAX:
        shapes += [
            Stroke(((paper.x(t), HEAD), (paper.x(t), foot)), window.theme.faint, opacity=0.6) for t in opened.tolist()
        ]
    y = paper.y(window.lane(SYNCER))
    return shapes + [
        Stroke(((paper.x(t), y - HALF * LANE), (paper.x(t), y + HALF * LANE)), window.theme.lines[2], width=1.6)
        for t in merged.tolist()
    ]


def _late(found: Tables, paper: _Paper) -> list[Shape]:
    window, rows = paper.window, found["contributions"]
    start_ns = np.where(rows["captured_ns"] >= 0, rows["captured_ns"], rows["arrival_ns"])
    mine = (rows["fate"] == DROPPED) & (rows["arrival_ns"] >= 0) & window.shows(rows["learner"])
    mine &= window.touches(found, start_ns, rows["arrival_ns"])
    ends = since_began(found, start_ns[mine]), since_began(found, rows["arrival_ns"][mine])
    lanes, reasons = window.lanes_of(rows["learner"][mine]), rows["reason"][mine].astype(str)
    return [
        paper.box(low, high, lane - HALF / 2, HALF / 2, ORANGE, hatched=True, said=f"not merged: {reason}")
        for low, high, lane, reason in zip(*(one.tolist() for one in (*ends, lanes, reasons)), strict=True)
    ]


def _arrows(found: Tables, paper: _Paper) -> list[Shape]:
    """Contributions from their capture to their merge, unless they are too many."""
    window = paper.window
    sent, merged, learner = contribution_ends(found)
    inside = (sent >= window.low) & (merged <= window.high) & window.shows(learner)
    if np.count_nonzero(inside) > ARROWS_MAX:
        return []
    lanes, top = window.lanes_of(learner[inside]) + HALF, paper.y(window.lane(SYNCER) - HALF)
    return [
        Stroke(((paper.x(a), paper.y(lane)), (paper.x(b), top)), window.theme.text, width=0.8, opacity=0.45)
        for a, b, lane in zip(sent[inside].tolist(), merged[inside].tolist(), lanes.tolist(), strict=True)
    ]


def _legend(paper: _Paper) -> list[Shape]:
    theme, y = paper.window.theme, paper.height - 16.0
    named = (
        (theme.lines[0], "step", False), (theme.lines[2], "merge", False), (VERMILLION, "fault", False),
        (PURPLE, "injected", False), (ORANGE, "not merged", True),
    )  # fmt: skip
    shapes: list[Shape] = []
    for number, (colour, name, hatched) in enumerate(named):
        x = LEFT + 110.0 * number
        faint = 0.3 if name == "fault" else 1.0
        shapes += [
            Box(x, y, 14, 10, colour, hatched=hatched, opacity=faint),
            Text(x + 20, y + 9, name, QUIET[theme.name], 11),
        ]
    return shapes
