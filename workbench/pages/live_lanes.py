"""Lanes of a run that goes on: its last seconds as they come, or the whole run so far, one key apart."""

from __future__ import annotations

from typing import Any

import panel as pn

from workbench.pages import style
from workbench.pages.figure_words import FigureWords
from workbench.pages.lane_choice import LaneChoice, lanes_html, lateness
from workbench.pages.live_figures import LaneFigure
from workbench.pages.site import Site
from workbench.pages.so_far import SoFar
from workbench.pages.spans import WINDOW_S
from workbench.pages.watcher import Watcher
from workbench.views.palette import LIGHT, Theme

LAST_SAID = (
    f"What each process did in the last {WINDOW_S:.0f} s: boxes are inner steps, blank is idle; grey was not heard yet."
)


class LiveLanes:
    """Parameters
    ----------
    site : Site
    watcher : Watcher
    choice : LaneChoice
        Which lanes in which order.

    Attributes
    ----------
    choice : LaneChoice
    is_whole : bool
        Whether the whole run is shown.
    """

    def __init__(self, site: Site, watcher: Watcher, choice: LaneChoice) -> None:
        self._watcher, self.choice, self.is_whole = watcher, choice, False
        self._theme: Theme = LIGHT
        self._unfolded, self._told_s, self._late = False, 0.0, ""
        self._figure = LaneFigure(choice.rows(range(watcher.learners)), watcher.began_s)
        self._whole = SoFar(site, watcher.run.path, ("swimlanes",), "lanes")
        self._words, self._said, self._ways = FigureWords("lanes"), style.html(""), style.html("")
        self._box = pn.Column(self._figure.pane, sizing_mode="stretch_width", margin=0)

    def parts(self) -> tuple[Any, ...]:
        """What stands in their card."""
        self.arrange(self.choice)
        self._show()
        return self._ways, self._said, self._box

    def wear(self, theme: Theme) -> None:
        """Take on a theme."""
        self._theme = theme
        self._figure.wear(theme)
        self._whole.wear(theme)

    @property
    def is_behind(self) -> bool:
        """Whether somebody has been added, or rounds have begun, since they were arranged."""
        now = self.choice.rows(range(self._watcher.learners)), self._watcher.began_s
        return (self._figure.rows, self._figure.began_s) != now

    def heard(self, said: dict[str, Any]) -> None:
        """One of their buttons was pressed."""
        status, self._unfolded = self._watcher.status, True
        learners = status["learners"] if status is not None else []
        behind = {one["learner"]: float(one.get("behind") or 0.0) for one in learners}
        self._late = lateness(said, self._late, behind)
        self.arrange(self.choice.heard(said, range(self._watcher.learners), behind))

    def arrange(self, choice: LaneChoice) -> None:
        """Show lanes in another order; somebody may have been added, and times may count from elsewhere."""
        self.choice = choice
        rows, began_s = choice.rows(range(self._watcher.learners)), self._watcher.began_s
        if (self._figure.rows, self._figure.began_s) != (rows, began_s):
            self._figure = LaneFigure(rows, began_s)
            self._figure.wear(self._theme)
            self._whole.draw_with(learners=rows)
            self._show()
        html = lanes_html(choice, range(self._watcher.learners), unfolded=self._unfolded, late=self._late)
        if self._said.object != html:
            self._said.object = html

    def turn(self) -> None:
        """Show the whole run so far, or its last seconds again."""
        self.is_whole = not self.is_whole
        self._whole.soon()
        self._show()

    def turn_table(self) -> None:
        """Show the numbers of what is shown as a table, or no more."""
        if self.is_whole:
            self._whole.turn_table()
        else:
            self._words.turn()
            self._tell()

    def tick(self, now_s: float, unheard: dict[int, float], *, shown: bool) -> None:
        """Take over what is new; ``unheard``: learners, and for how long nothing was heard of each [s]."""
        self._figure.update(self._watcher.spans, now_s, unheard)
        self._whole.tick(shown=shown and self.is_whole)
        if self._words.tabled and now_s - self._told_s >= TABLE_EVERY_S:
            self._told_s = now_s
            self._tell()

    def end(self, *, shown: bool) -> None:
        """The run is over: the whole of it is drawn once more, its last seconds stay."""
        self._whole.tick(shown=shown and self.is_whole, over=True)

    def _tell(self) -> None:
        self._words.tell(LAST_SAID, self._figure.pane.object, self._figure.names)

    def _show(self) -> None:
        press = style.do(
            "whole", "whole run", "whole run: all of it so far, or its last seconds", pressed=self.is_whole
        )
        self._ways.object = f'<p class="dos">{press}</p>'
        self._box[:] = [*self._whole.parts()] if self.is_whole else [self._figure.pane, self._words.pane]
        self._tell()


TABLE_EVERY_S = 5.0
"""So often a table of what moves is written anew."""
