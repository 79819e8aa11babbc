"""How a run shows itself in a notebook; what draws it is loaded when somebody looks, never by a process that trains."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Showing:
    """Cards of whatever is a run."""

    def _repr_html_(self) -> str:
        card: str = import_module("workbench.views.run_card").run_card(self)
        return card

    def live(self, every_s: float = 0.5) -> Any:
        """A picture of the run that moves, until the run is over.

        Parameters
        ----------
        every_s : float
            Time between two looks [s].

        Returns
        -------
        panel.pane.HTML
            For a notebook (it moves while no other cell works) or a Panel app; without an event loop it stands still.
        """
        return import_module("workbench.views.live").live(self, every_s)
