"""Messages between lanes: contributions on their way to the syncer, updates on their way to the learners."""

from __future__ import annotations

import holoviews as hv
import numpy as np

from workbench.analysis.arrays.tables import Array, Tables, events_of, since_began
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind
from workbench.tape.schema import MERGED
from workbench.views.lanes import KEYS, Window
from workbench.views.palette import GREEN

ARROWS_MAX = 500
"""Of either kind; where there are more none are drawn: they would hide all else."""

Ends = tuple[Array, Array, Array]
"""Departure [s], arrival [s], learner."""


def arrow_layers(found: Tables, window: Window) -> list[hv.Element]:
    """Arrows of both kinds that begin and end in the window."""
    up, down = contribution_ends(found), update_ends(found)
    colours = window.theme.text, GREEN
    layers: list[hv.Element] = []
    for ends, label, colour, upward in ((up, "contribution", colours[0], True), (down, "update", colours[1], False)):
        inside = (ends[0] >= window.low) & (ends[1] <= window.high) & window.shows(ends[2])
        if 0 < np.count_nonzero(inside) <= ARROWS_MAX:
            layers += _arrows((ends[0][inside], ends[1][inside], ends[2][inside]), window, label, colour, upward)
    return layers


def contribution_ends(found: Tables) -> Ends:
    """From the capture at the learner to the merge at the syncer."""
    rows, merges = found["contributions"], found["merges"]
    mine = (rows["fate"] == MERGED) & (rows["merge"] >= 0) & (rows["captured_ns"] >= 0)
    merged_ns = found["events"]["time_ns"][merges["event"][rows["merge"][mine]]]
    return since_began(found, rows["captured_ns"][mine]), since_began(found, merged_ns), rows["learner"][mine]


def update_ends(found: Tables) -> Ends:
    """From the first time that an update is handed to the transport to its fold at each learner."""
    events, merges = found["events"], found["merges"]
    folds = events_of(found, Kind.UPDATE_FOLDED)
    sent = {
        key: time_ns
        for *key_, time_ns in zip(
            merges["fragment"].tolist(), merges["version"].tolist(), merges["send_ns"].tolist(), strict=True
        )
        if time_ns >= 0 and (key := tuple(key_))
    }
    keys = zip(events["fragment"][folds].tolist(), events["version"][folds].tolist(), strict=True)
    sent_ns = np.array([sent.get(key, -1) for key in keys], np.int64)
    known = sent_ns >= 0
    folded_ns, learner = events["time_ns"][folds][known], events["process"][folds][known] - FIRST_LEARNER
    return since_began(found, sent_ns[known]), since_began(found, folded_ns), learner


def _arrows(ends: Ends, window: Window, label: str, colour: str, upward: bool) -> list[hv.Element]:
    departure, arrival, learner = ends
    edge = window.lanes_of(learner) + 0.36
    syncer = np.full(len(edge), window.lane(SYNCER) - 0.36)
    begin, end = (edge, syncer) if upward else (syncer, edge)
    lines = hv.Segments((departure, begin, arrival, end), KEYS, label=label)
    heads = hv.Scatter((arrival, end), ["time_s"], ["rows"])
    marker = "triangle" if upward else "inverted_triangle"
    return [
        lines.opts(color=colour, alpha=0.45, line_width=0.8, backend="bokeh"),
        heads.opts(color=colour, alpha=0.7, marker=marker, size=5, backend="bokeh"),
    ]
