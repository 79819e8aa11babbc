"""A figure with a sentence that says what it shows, and its numbers as a table: for notebooks, for who hears."""

from __future__ import annotations

from html import escape
from typing import Any

import panel as pn

from workbench import views
from workbench.config import ConfigError
from workbench.views import frame  # a notebook shows figures and panes from now on, without a network too
from workbench.views.figure_tables import caption, figure_table_html
from workbench.views.sources import Source

__all__ = ["described", "frame"]


def described(name: str, source: Source, **options: Any) -> pn.Column:
    """A figure, what it shows in a sentence, and its numbers as a table that unfolds.

    Parameters
    ----------
    name : str
        Of a figure, as in ``"goodput"``.
    source : tape, run folder, run
        What it is drawn from.
    options
        Of the figure.

    Returns
    -------
    panel.Column

    Raises
    ------
    ConfigError
        There is no such figure, or it cannot be drawn from this.
    """
    if name not in views.FIGURES:
        raise ConfigError(f"there is no figure {name!r}; there are {', '.join(views.FIGURES)}")
    drawn = frame.rendered(getattr(views, name)(source, **options))
    return pn.Column(
        pn.pane.Bokeh(drawn, sizing_mode="stretch_width"),
        pn.pane.HTML(words_html(caption(name), drawn), sizing_mode="stretch_width"),
        sizing_mode="stretch_width",
    )


def words_html(sentence: str, figure: Any) -> str:
    """A sentence and a table that unfolds, for a figure as Bokeh draws it."""
    said = f"<p>{escape(sentence)}</p>" if sentence else ""
    return f"{said}<details><summary>its numbers as a table</summary>{figure_table_html(figure)}</details>"
