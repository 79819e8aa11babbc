from __future__ import annotations

from typing import Any

import numpy as np
import panel as pn
import pytest
from bokeh.plotting import figure

from tests.views.runs import faulty
from workbench import views
from workbench.config import ConfigError
from workbench.views import frame
from workbench.views.figure_tables import ROWS_MAX, caption, figure_table_html


@pytest.mark.parametrize("name", sorted(views.FIGURES))
def test_every_figure_has_a_sentence_and_a_table(name: str) -> None:
    table = figure_table_html(frame.rendered(getattr(views, name)(faulty())))
    assert caption(name).endswith((".", ";", ":")) and len(caption(name)) > 20
    assert "<td>" in table and "Nothing of it is rows" not in table


def test_a_table_holds_what_is_drawn_and_says_what_it_leaves_out() -> None:
    plot = figure()
    plot.line(list(range(100)), [float(n) for n in range(100)])
    table = figure_table_html(plot)
    assert table.count("<tr>") == ROWS_MAX + 1 and f"not shown: {100 - ROWS_MAX} between these" in table
    assert "<td>0</td><td>0</td>" in table and "<td>99</td><td>99</td>" in table


def test_a_picture_is_told_by_its_rows() -> None:
    plot = figure()
    plot.image([np.array([[1.0, 3.0], [np.nan, np.nan], [np.nan, 7.0]])], x=0, y=0, dw=2, dh=3)
    table = figure_table_html(plot, ["L0", "L1", "L2"])
    assert "<td>L2</td><td>1</td><td>7</td><td>7</td><td>7</td>" in table
    assert "<td>L0</td><td>2</td><td>1</td><td>2</td><td>3</td>" in table and "L1" not in table


def test_a_notebook_gets_figure_sentence_and_table() -> None:
    shown = views.described("norms", faulty(), smooth=0.9)
    parts: list[Any] = list(shown)
    words = parts[1].object
    assert isinstance(shown, pn.Column)
    assert caption("norms") in words and "<summary>its numbers as a table</summary>" in words and "<td>" in words
    with pytest.raises(ConfigError, match="there is no figure 'cake'; there are swimlanes, loss"):
        views.described("cake", faulty())


def test_a_report_tells_each_figure_in_numbers_too() -> None:
    page = views.to_html({"norms of it": views.norms(faulty())}, sentences={"norms of it": "So <long>."})
    assert "<p>So &lt;long&gt;.</p><details>" in page and "<th scope='col'>outer norm</th>" in page
