"""A figure of a whole run that goes on, drawn from its tape so far: again and again, in another thread."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from html import escape
from pathlib import Path
from typing import Any

import panel as pn

from workbench.config import ConfigError
from workbench.pages import style
from workbench.pages.figure_words import FigureWords
from workbench.pages.replay_drawing import COURSES
from workbench.pages.site import Site
from workbench.tape import TapeError, open_tape
from workbench.views.figure_tables import caption
from workbench.views.palette import LIGHT, Theme

EVERY_S = 5.0
SHARE = 0.05
"""Of one core that drawing may take at most."""
FIRST = "staleness"


class SoFar:
    """A choice of figures, and the one that is chosen.

    Parameters
    ----------
    site : Site
    path : Path
        Folder of the run.
    names : sequence of str
        Figures to choose from; a choice is shown where there are several.
    which : str
        Name of their place on the page.
    """

    def __init__(self, site: Site, path: Path, names: Sequence[str] = (), which: str = "figure") -> None:
        self._site, self._path = site, path
        self._theme: Theme = LIGHT
        self._under_way: Future[tuple[Any, float]] | None = None
        self._due_s, self._options = 0.0, dict[str, Any]()
        self._over = self._is_last = False
        given = names or [name for name in COURSES if name != "loss"]
        options = {name.replace("_", " "): name for name in given}
        first = FIRST if FIRST in given else given[0]
        self.choice = style.select(name="figure of the run so far", options=options, value=first, width=200)
        self.choice.param.watch(lambda _: self.soon(), "value")
        self.choice.visible = len(given) > 1
        self.pane = pn.pane.Bokeh(None, sizing_mode="stretch_width", margin=0)
        self.words = FigureWords(which)
        self.said = style.html('<p class="quiet">drawn from the tape, some seconds behind</p>')

    def parts(self) -> tuple[Any, ...]:
        """What stands in its card."""
        return self.choice, self.pane, self.words.pane, self.said

    def draw_with(self, **options: Any) -> None:
        """Draw with other options of the figure from now on."""
        self._options = options
        self.soon()

    def turn_table(self) -> None:
        """Show the figure's numbers as a table, or no more."""
        self.words.turn()
        self._tell()

    def _tell(self) -> None:
        if self.pane.object is not None:
            self.words.tell(caption(str(self.choice.value)), self.pane.object)

    def wear(self, theme: Theme) -> None:
        """Take on a theme."""
        self._theme = theme
        self.soon()

    def soon(self) -> None:
        """Draw as soon as may be."""
        self._due_s = 0.0

    def tick(self, *, shown: bool, over: bool = False) -> None:
        """Take over what has been drawn, and have it drawn anew when it is time; once more when the run is ``over``."""
        if self._under_way is not None and self._under_way.done():
            self._take(self._under_way)
            self._under_way = None
        if over and not self._over:
            self._over = True
            self.soon()
        if self._under_way is None and shown and time.monotonic() >= self._due_s:
            self._due_s, self._is_last = float("inf"), self._over
            asked = self._path, str(self.choice.value), self._theme.name, self._options
            self._under_way = self._site.drawing.submit(_drawn, *asked)

    def _take(self, done: Future[tuple[Any, float]]) -> None:
        wait_s = EVERY_S
        try:
            figure, took_s = done.result()
        except (TapeError, ConfigError, OSError) as error:  # the tape has only just begun
            said = "the run is over, and its tape cannot be read" if self._is_last else str(error)
            self.said.object = f'<p class="quiet">{escape(said)}</p>'
        else:
            self.pane.object = figure
            self._tell()
            wait_s = max(EVERY_S, took_s / SHARE)
            again = ": the run is over" if self._is_last else f", again every {wait_s:.0f} s"
            self.said.object = f'<p class="quiet">drawn from the tape{again}</p>'
        if self._due_s == float("inf") and not self._is_last:  # nothing else was chosen meanwhile
            self._due_s = time.monotonic() + wait_s


def _drawn(path: Path, name: str, theme: str, options: dict[str, Any]) -> tuple[Any, float]:
    """A figure of the tape as it is now, and how long that took [s]."""
    from workbench.pages.replay_figures import rendered

    began = time.thread_time()
    return rendered(open_tape(path), name, theme, **options), time.thread_time() - began
