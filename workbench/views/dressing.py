"""The colours of a theme on a Bokeh figure: whoever drew it, and again when the theme changes."""

from __future__ import annotations

from typing import Any

from workbench.views.palette import Theme


def dress(figure: Any, theme: Theme) -> None:
    """Give a figure the colours of a theme: this figure alone, not all there are."""
    figure.background_fill_color = figure.border_fill_color = theme.ground
    figure.outline_line_color = theme.grid
    if figure.title is not None:
        figure.title.text_color = theme.text
    for one in figure.axis:
        one.axis_label_text_color = one.major_label_text_color = theme.text
        one.axis_label_text_font_style = "normal"
        one.axis_line_color = one.major_tick_line_color = theme.faint
        one.minor_tick_line_color = None
    figure.grid.grid_line_color = theme.grid
    for legend in figure.legend:
        legend.background_fill_color = theme.ground
        legend.border_line_color = None
        legend.label_text_color = theme.text
        legend.inactive_fill_color = theme.ground
