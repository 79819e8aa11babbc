"""Idle times that are drawn narrow: where they are, and that everything else keeps its length and its order."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.runs import began, ended, joined, merged, step
from workbench import views
from workbench.analysis.arrays.tables import Tables, since_began
from workbench.analysis.from_records import tables
from workbench.views.gaps import KEPT, NONE, Gaps, idle_gaps, squeezed, ticks
from workbench.views.lanes import Window
from workbench.views.palette import LIGHT


@pytest.fixture(scope="module")
def idle() -> Tables:
    """Two learners that step from 0 to 1 s and from 4 to 5 s; one of them alone at 2 s."""
    return tables([
        began(0.0), joined(0, 0.0), joined(1, 0.0), step(0, 0.0, 1.0, 1), step(1, 0.0, 1.0, 1), step(1, 2.0, 2.2, 2),
        step(0, 4.0, 5.0, 2), step(1, 4.0, 5.0, 3), merged(1, 5.0, 1, (0, 1)), ended(5.0),
    ])  # fmt: skip


def window(low: float, high: float, *learners: int) -> Window:
    return Window(low, high, learners, LIGHT)


def test_a_gap_is_where_nobody_with_a_lane_does_anything(idle: Tables) -> None:
    both = idle_gaps(idle, window(0.0, 5.0, 0, 1), 0.5)
    assert both.start_s.round(6).tolist() == [1.0, 2.2] and both.end_s.round(6).tolist() == [2.0, 4.0]
    one = idle_gaps(idle, window(0.0, 5.0, 0), 0.5)
    assert one.start_s.round(6).tolist() == [1.0] and one.end_s.round(6).tolist() == [4.0]
    assert len(idle_gaps(idle, window(0.0, 5.0, 0, 1), 2.5).start_s) == 0


def test_steps_keep_their_length_and_what_comes_later_moves_together(idle: Tables) -> None:
    gaps = idle_gaps(idle, window(0.0, 5.0, 0, 1), 0.5)
    moved = squeezed(idle, gaps)
    for table in (idle, moved):
        length = (table["steps"]["end_ns"] - table["steps"]["start_ns"]) * 1e-9
        assert length.round(6).tolist() == [1.0, 1.0, 0.2, 1.0, 1.0]
    last = since_began(moved, moved["steps"]["end_ns"]).max()
    assert last == pytest.approx(5.0 - (1.0 + 1.8) + 2 * KEPT * 0.5)
    named = {text: place for place, text in ticks(gaps, window(0.0, 5.0, 0, 1))}
    assert named["0"] == 0.0 and named["5"] == pytest.approx(last) and "3" not in named


@given(st.lists(st.floats(0, 100), max_size=8), st.lists(st.floats(-10, 110), min_size=2, max_size=20))
def test_places_and_times_belong_together(edges: list[float], times: list[float]) -> None:
    ends = np.unique(np.round(edges, 3))
    ends = ends[: len(ends) // 2 * 2].reshape(-1, 2)
    ends = ends[ends[:, 1] - ends[:, 0] > 0.2]
    gaps = Gaps(ends[:, 0], ends[:, 1], 0.1)
    ordered = np.sort(np.array(times))
    places = gaps.shown(ordered)
    assert (np.diff(places) >= -1e-9).all()
    outside = ~((ordered[:, None] > ends[:, 0] + 0.1 - 1e-6) & (ordered[:, None] < ends[:, 1] + 1e-6)).any(1)
    assert np.allclose([gaps.meant(place) for place in places[outside].tolist()], ordered[outside])
    assert NONE.shown(3.5) == NONE.meant(3.5) == 3.5


def test_lanes_with_narrow_gaps_say_the_real_times(idle: Tables) -> None:
    figure: Any = hv.render(views.swimlanes(idle, collapse_s=0.5), backend="bokeh")
    assert figure.x_range.end < 3.0
    said = figure.below[0].major_label_overrides or {}
    assert "5" in {str(text) for text in said.values()}
    whole: Any = hv.render(views.swimlanes(idle), backend="bokeh")
    assert whole.x_range.end == pytest.approx(5.0)
