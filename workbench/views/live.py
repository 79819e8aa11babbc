"""A run's card that moves: a pane whose periodic callback looks at the run, and stops with it."""

from __future__ import annotations

import asyncio

import panel as pn

from workbench.engine.launch import Run
from workbench.views import frame
from workbench.views.run_card import run_card

LEAST_S = 0.1

__all__ = ["frame", "live"]  # the import of frame makes a notebook show figures and panes, without a network too


def live(run: Run, every_s: float = 0.5) -> pn.pane.HTML:
    """A pane with the card of a run, renewed every ``every_s`` seconds until the run is over.

    It needs an event loop (a notebook's kernel, a Panel server); without one it shows the run as it is now.
    """
    pane = pn.pane.HTML(run_card(run), sizing_mode="stretch_width")
    if run.running and _has_loop():
        callback = pn.state.add_periodic_callback(lambda: renew(), period=round(max(every_s, LEAST_S) * 1e3))

        def renew() -> None:
            over = not run.running
            pane.object = run_card(run)
            if over:
                callback.stop()

    return pane


def _has_loop() -> bool:
    """Whether there is a loop that will call back: a server's, or the one that runs here."""
    if pn.state.curdoc is not None and pn.state.curdoc.session_context is not None:
        return True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
