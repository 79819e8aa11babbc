from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.views.runs import faulty
from workbench import views
from workbench.config import ConfigError
from workbench.views.smoothing import smoothed


@given(st.floats(-1e6, 1e6), st.integers(1, 50), st.floats(0.0, 0.99))
def test_a_series_of_equal_values_stays_as_it_is(value: float, count: int, smooth: float) -> None:
    assert np.allclose(smoothed(np.full(count, value), smooth), value, rtol=1e-9)


def test_every_value_has_the_weight_that_the_formula_gives() -> None:
    values, smooth = np.array([3.0, np.nan, 1.0, 4.0, 1.0, 5.0]), 0.7
    finite = np.isfinite(values)
    for n, mean in enumerate(smoothed(values, smooth).tolist()):
        kept = values[: n + 1][finite[: n + 1]]
        weights = smooth ** np.arange(len(kept) - 1, -1, -1.0)
        assert mean == pytest.approx((weights * kept).sum() / weights.sum())


@pytest.mark.parametrize("name", ["loss", "norms", "step_times"])
def test_figures_draw_the_average_before_the_line_if_it_is_asked_for(name: str) -> None:
    draw = getattr(views, name)
    plain, smooth = draw(faulty()), draw(faulty(), smooth=0.9)
    labels = [[layer.label for layer in figure] for figure in (plain, smooth)]
    words = [word for word in labels[1] if "smoothed" in word or "average" in word]
    assert words and not any("smoothed" in word or "average" in word for word in labels[0])
    assert len(labels[1]) > len(labels[0]), "the line itself is still there"
    with pytest.raises(ConfigError, match=r"smooth = 1.0; allowed: 0 \(as it is\) to below 1"):
        draw(faulty(), smooth=1.0)
