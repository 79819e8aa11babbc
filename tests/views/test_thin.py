from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.views.thin import covered, evenly, min_max, stretches


@given(st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), max_size=300), st.integers(6, 60))
def test_thinning_keeps_ends_and_extremes(values: list[float], most: int) -> None:
    y = np.array(values)
    kept = min_max(y, most)
    assert len(kept) <= max(most, 0) and (np.diff(kept) > 0).all()
    if len(y):
        assert kept[0] == 0 and kept[-1] == len(y) - 1
    if np.isfinite(y).any():
        assert np.nanmin(y[kept]) == np.nanmin(y) and np.nanmax(y[kept]) == np.nanmax(y)


@given(st.lists(st.integers(0, 2), max_size=50))
def test_stretches_put_together_are_the_values(values: list[int]) -> None:
    start, stop, value = stretches(np.array(values, np.int64))
    assert np.repeat(value, stop - start).tolist() == values
    assert (value[1:] != value[:-1]).all()


def test_what_only_rises_is_thinned_evenly() -> None:
    assert evenly(5).tolist() == [0, 1, 2, 3, 4] and evenly(0).tolist() == []
    assert evenly(101, 11).tolist() == list(range(0, 101, 10))


def test_cover_of_bins_by_hand() -> None:
    low, high = np.array([0.0, 1.5, 3.0]), np.array([1.0, 2.5, 3.0])
    assert covered(low, high, np.arange(5.0)).tolist() == [1.0, 0.5, 0.5, 0.0]
    assert covered(low[:0], high[:0], np.arange(3.0)).tolist() == [0.0, 0.0]
