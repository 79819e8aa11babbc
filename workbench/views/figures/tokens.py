"""Where the tokens had gone, over the time of a run."""

from __future__ import annotations

import holoviews as hv
import numpy as np

from workbench.views.frame import Look, axis, chart, dims, time_axis
from workbench.views.palette import FATES
from workbench.views.sources import Source, bands, dataset, known, span_s
from workbench.views.thin import evenly

POINTS = 400


def tokens(
    source: Source,
    *,
    share: bool = False,
    width: int | None = None,
    height: int | None = None,
    theme: str = "light",
) -> hv.Overlay:
    """Tokens processed so far by fate, stacked.

    Parameters
    ----------
    source : tape, run folder, run, or Dataset of ``tape.wb.token_fates()``
    share : bool
        Shares of what was processed so far, instead of numbers.
    width, height : int, optional
        [pixels]
    theme : str
        ``light`` or ``dark``.
    """
    look, given = Look.of(width, height, theme), known(source)
    found = dataset(given, "token_fates", "tokens", "share")
    kept = evenly(found.sizes["merge"], POINTS)
    at = found["time_s"].values[kept]
    across = time_axis(*(span_s(given) or (0.0, float(at.max(initial=1.0)))))
    values = np.nan_to_num(found["share" if share else "tokens"].values[kept])
    label = "share of the tokens processed" if share else "tokens processed"
    upward = axis("token_share" if share else "tokens", label, values.sum(1), zero=True, room=0.0 if share else 0.03)
    floor, layers = np.zeros(len(kept)), []
    for name, part in zip(found["fate"].values.tolist(), values.T, strict=True):
        if not part.sum() > 0:
            continue
        area = hv.Area((at, floor, floor + part), *dims(across, upward, "top"), label=name.replace("_", " "))
        layers.append(area.opts(color=FATES[name], fill_alpha=0.85, line_alpha=0, backend="bokeh"))
        floor = floor + part
    empty = "" if layers else "nothing was merged"
    return chart(layers, look, "Where the tokens went", (across, upward), bands(given), empty=empty)
