"""Losses of several runs on one axis, and their differences to the first, with a cursor."""

from __future__ import annotations

import holoviews as hv
import numpy as np

from workbench import views
from workbench.analysis.comparing.curves import curves
from workbench.pages.linked import OF_CURVES, Linked
from workbench.pages.replay_figures import cursor
from workbench.views import frame
from workbench.views.figures.loss import X_LABELS
from workbench.views.frame import Look, axis, chart, dims
from workbench.views.palette import line_colour, line_dash

HEIGHT = 250


class Overlay:
    """Both figures.  Waits: drawing takes up to seconds.

    Attributes
    ----------
    losses, differences : bokeh figure
    """

    def __init__(self, linked: Linked, along: str, theme: str) -> None:
        x = OF_CURVES[along]
        named = {letter: one.tape for letter, one in zip(linked.letters, linked.recordings, strict=True)}
        losses = views.loss(named, x=x, height=HEIGHT, theme=theme)
        self.losses = frame.rendered(losses)
        self.differences = frame.rendered(_differences(linked, x, theme))
        self._cursors = [cursor(figure, theme) for figure in (self.losses, self.differences)]

    def move(self, value: float) -> None:
        """Put the cursor somewhere else."""
        for one in self._cursors:
            one.location = value


def _differences(linked: Linked, x: str, theme: str) -> hv.Overlay:
    found = curves([one.tape for one in linked.recordings], linked.letters, x)
    look = Look.of(None, HEIGHT, theme)
    points, values = found[x].values.astype(float), found["difference"].values
    across = axis(x, X_LABELS[x], points, room=0.02)
    upward = axis("difference", "loss less that of A [nat per byte]", np.append(values.ravel(), 0.0))
    layers = [
        hv.Curve((points, values[number]), *dims(across, upward), label=f"{letter} - A").opts(
            color=line_colour(look.theme, number), line_dash=line_dash(look.theme, number), line_width=2,
            backend="bokeh",
        )
        for number, letter in enumerate(linked.letters)
        if number
    ]  # fmt: skip
    empty = "" if len(points) else "no evaluations that all runs have around them"
    return chart(layers, look, "Difference in validation loss", (across, upward), [], empty=empty)
