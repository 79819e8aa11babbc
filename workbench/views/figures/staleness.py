"""Staleness of what was merged: learner by round."""

from __future__ import annotations

import holoviews as hv
import numpy as np

from workbench.analysis.arrays.tables import Array
from workbench.analysis.distributions import UNITS
from workbench.config import ConfigError
from workbench.views.cells import grid, height_of, row_options, rows_axis, rows_of, shaded
from workbench.views.frame import Axis, Look, chart
from workbench.views.sources import Band, Known, Source, bands, dataset, known, rounds_at

COLUMNS_MAX = 400
MEANINGS = {
    "versions": "version merged into - 1 - base version",
    "steps": "own steps in the contribution",
    "rounds": "round - round of the base",
    "seconds": "age of the base at the capture",
    "lag": "from the capture to the merge",
}


def staleness(
    source: Source,
    *,
    measure: str = "lag",
    width: int | None = None,
    height: int | None = None,
    theme: str = "light",
) -> hv.Overlay:
    """Staleness of merged contributions, learner by round; no cell where a learner is not in the merge.

    Parameters
    ----------
    source : tape, run folder, run, or Dataset of ``tape.wb.staleness()``
    measure : str
        ``lag`` [s], ``seconds`` [s], ``steps``, ``rounds`` or ``versions`` (DESIGN section 9).
    width, height : int, optional
        [pixels]
    theme : str
        ``light`` or ``dark``.

    Raises
    ------
    ConfigError
        For another measure.
    """
    if measure not in UNITS:
        raise ConfigError(f"measure = {measure!r}; allowed: {', '.join(UNITS)}")
    given = known(source)
    found = dataset(given, "staleness", measure)
    inside = found["merge"].values >= 0
    learner, rounds = found["learner"].values[inside], found["round"].values[inside]
    values, unit = _scaled(found[measure].values[inside].astype(float), UNITS[measure])
    labels = [f"L{m}" for m in range(int(learner.max(initial=-1)) + 1)]
    look = Look.of(width, height, theme, usual=height_of(len(labels)))
    low, step, columns = _columns(rounds)
    across = Axis("rounds", "round t", low, low + step * columns)
    layers = []
    if np.isfinite(values).any():
        image = grid(
            _largest(values, learner, (rounds - low) // step, (len(labels), columns)), across, low, across.high
        )
        layers.append(shaded(image, look.theme, float(np.nanmax(np.r_[values, 0.0]))))
    each = "" if step == _least(rounds) else f", most of {step / _least(rounds):.0f} rounds"
    title = f"Staleness: {measure}{unit}, {MEANINGS[measure]}{each}"
    empty = "" if layers else f"nothing that was merged has {measure}" if len(values) else "nothing was merged"
    struck = _on_rounds(given) if len(values) else []
    axes = across, rows_axis(labels)
    return chart(
        layers, look, title, axes, struck, empty=empty, legend=False, rows=rows_of(labels), more=row_options(labels)
    )


def _scaled(values: Array, unit: str) -> tuple[Array, str]:
    """Values in a unit that suits them, and its name in brackets."""
    if unit == "1":
        return values, ""
    return (values * 1e3, " [ms]") if np.nanmax(np.r_[values, 0.0]) < 1.0 else (values, f" [{unit}]")


def _least(rounds: Array) -> float:
    """Least distance of two rounds."""
    return float(np.diff(np.unique(rounds)).min(initial=2**31)) if len(np.unique(rounds)) > 1 else 1.0


def _columns(rounds: Array) -> tuple[float, float, int]:
    """First round less half a column, rounds in a column, columns."""
    if not len(rounds):
        return 0.0, 1.0, 1
    least = _least(rounds)
    count = int((rounds.max() - rounds.min()) / least) + 1
    step = least * -(-count // COLUMNS_MAX)
    low = float(rounds.min()) - least / 2
    return low, step, int((rounds.max() - low) // step) + 1


def _largest(values: Array, row: Array, column: Array, shape: tuple[int, int]) -> Array:
    cells = np.full(shape, -np.inf)
    np.maximum.at(cells, (row, column.astype(np.int64)), np.where(np.isnan(values), -np.inf, values))
    return np.where(np.isfinite(cells), cells, np.nan)


def _on_rounds(source: Known) -> list[Band]:
    struck = bands(source)
    if not struck:
        return []
    ends = np.array([(band.start_s, band.end_s) for band in struck]).T
    starts, stops = (rounds_at(source, times) for times in ends)
    return [
        band._replace(start_s=float(a), end_s=float(b))
        for band, a, b in zip(struck, starts.tolist(), stops.tolist(), strict=True)
    ]
