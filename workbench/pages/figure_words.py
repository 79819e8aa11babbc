"""What stands below a figure: a sentence that says what it shows, and its numbers as a table if they are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from workbench.pages import style
from workbench.views.figure_tables import figure_table_html


class FigureWords:
    """Parameters
    ----------
    which : str
        Name of the figure's place on its page, said by the button: ``{"do": "table", "which": …}``.

    Attributes
    ----------
    pane : pane
    tabled : bool
        Whether the table is shown.
    """

    def __init__(self, which: str) -> None:
        self._which, self.tabled = which, False
        self.pane = style.html("")

    def tell(self, sentence: str, figure: Any, lanes: Sequence[str] = ()) -> None:
        """Say what a figure shows; ``lanes``: names of its rows, from bottom to top, where it has some."""
        name = f"table: the numbers of the {self._which}"
        press = style.do("table", "table", name, pressed=self.tabled, which=self._which)
        region = f'class="scrolled" tabindex="0" role="region" aria-label="numbers of the {self._which}"'
        table = f"<div {region}>{figure_table_html(figure, lanes)}</div>" if self.tabled and figure is not None else ""
        html = f'<p class="dos"><span class="quiet grow">{escape(sentence)}</span> {press}</p>{table}'
        if self.pane.object != html:
            self.pane.object = html

    def turn(self) -> None:
        """Show the table from the next `tell` on, or no more."""
        self.tabled = not self.tabled
