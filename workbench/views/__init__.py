"""Figures of runs, from tapes or from the Datasets of the analyses: one signature, objects of HoloViews (Bokeh).

``wb.views.loss(tape)``; a figure takes a source first (an open tape, a run folder, a run, tables of a tape or the
Dataset that it draws) and ``width``, ``height`` [pixels] and ``theme`` by name.  Nothing here is loaded by a process
that trains; names load their module at first use, and cards and states load no plotting library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.views.described import described
    from workbench.views.figures.contributions import contributions
    from workbench.views.figures.goodput import goodput
    from workbench.views.figures.loss import loss
    from workbench.views.figures.norms import norms
    from workbench.views.figures.participation import participation
    from workbench.views.figures.staleness import staleness
    from workbench.views.figures.step_times import behind, step_times
    from workbench.views.figures.swimlanes import swimlanes
    from workbench.views.figures.tokens import tokens
    from workbench.views.figures.traffic import traffic
    from workbench.views.figures.waits import waits
    from workbench.views.page import save, to_html
    from workbench.views.pictures import gif, svg

FIGURES = {
    "swimlanes": "figures.swimlanes",
    "loss": "figures.loss",
    "goodput": "figures.goodput",
    "participation": "figures.participation",
    "contributions": "figures.contributions",
    "staleness": "figures.staleness",
    "behind": "figures.step_times",
    "step_times": "figures.step_times",
    "waits": "figures.waits",
    "tokens": "figures.tokens",
    "traffic": "figures.traffic",
    "norms": "figures.norms",
}
"""Module of each figure, in the order in which a page shows them."""

__all__ = [
    "FIGURES",
    "behind",
    "contributions",
    "described",
    "gif",
    "goodput",
    "loss",
    "norms",
    "participation",
    "save",
    "staleness",
    "step_times",
    "svg",
    "swimlanes",
    "to_html",
    "tokens",
    "traffic",
    "waits",
]

_HOMES = {**FIGURES, "described": "described", "gif": "pictures", "save": "page", "svg": "pictures", "to_html": "page"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'workbench.views' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"workbench.views.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
