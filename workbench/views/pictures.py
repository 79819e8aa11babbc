"""Lanes and the learner grid as files that any program opens: SVG, and a GIF of the grid over time."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from workbench.analysis.arrays.tables import since_began
from workbench.analysis.exporting.target import Target
from workbench.analysis.from_tape import tables_of
from workbench.config import ConfigError
from workbench.views.drawing import Picture, to_svg
from workbench.views.grid_picture import WIDTH, all_states, grid_picture
from workbench.views.learner_cells import then_cells
from workbench.views.palette import theme_of
from workbench.views.sources import Source, bands, known, span_s

FILM_S = 20.0
"""So long a film is at its usual speed, at most [s]."""
PICTURES_MAX = 1500
PER_SECOND = 8.0
PER_SECOND_MAX = 50.0
WHAT = ("lanes", "grid")


class Film:
    """Pictures of the learner grid, from one time of a tape to another.

    Parameters
    ----------
    source : tape, run folder or run
    start_s, end_s : float, optional
        [s from the start of rounds]; the whole run by default.
    speed : float, optional
        Seconds of the run in one of the film; by default what makes it `FILM_S` long, and never less than 1.
    per_second : float
        Pictures in a second of the film.
    theme : str
        ``light`` or ``dark``.
    width : int
        [pixels]

    Raises
    ------
    ConfigError
        Numbers that make no film, or one with too many pictures.
    """

    def __init__(
        self, source: Source, start_s: float | None = None, end_s: float | None = None, speed: float | None = None,
        per_second: float = PER_SECOND, theme: str = "light", width: int = WIDTH,
    ) -> None:  # fmt: skip
        self._tape, self._theme, self._width = _tape(source), theme_of(theme), width
        self.start_s, self.end_s = _span(self._tape, start_s, end_s)
        length_s = self.end_s - self.start_s
        self.speed = max(1.0, length_s / FILM_S) if speed is None else speed
        if not self.speed > 0 or not 0 < per_second <= PER_SECOND_MAX:
            raise ConfigError(
                f"speed = {self.speed:g}, per_second = {per_second:g}; allowed: above 0, and above 0 up to "
                f"{PER_SECOND_MAX:g}"
            )
        self.every_s = 1.0 / per_second
        self.count = 1 + round(length_s / self.speed * per_second)
        if self.count > PICTURES_MAX:
            need = length_s * per_second / (PICTURES_MAX - 1)
            raise ConfigError(
                f"{self.count:,} pictures are too many for a GIF; allowed: {PICTURES_MAX:,}, give a speed of {need:.3g}"
            )
        events = self._tape["events"].dataset
        times = np.asarray(since_began(tables_of(self._tape), events["time_ns"].values), float)
        self._until_s = np.maximum.accumulate(times)

    def pictures(self) -> Iterator[Picture]:
        """One after the other."""
        for number in range(self.count):
            part = number / max(1, self.count - 1)
            yield self.picture(self.start_s + part * (self.end_s - self.start_s), part)

    def picture(self, time_s: float, part: float | None = None) -> Picture:
        """The grid at one time."""
        event = int(np.clip(np.searchsorted(self._until_s, time_s, "right") - 1, 0, len(self._until_s) - 1))
        return self.at(event, time_s, part)

    def at(self, event: int, time_s: float | None = None, part: float | None = None) -> Picture:
        """The grid at one event."""
        moment = self._tape.wb.at(event)
        said = f"{_name(self._tape)} · {self._until_s[event] if time_s is None else time_s:.1f} s"
        title = f"{said} · {moment.merges:,} merges"
        return grid_picture(then_cells(moment), self._theme, title, self._width, part)

    def whole(self) -> list[Picture]:
        """All of them, of one size: learners that come later have their room from the start."""
        drawn = list(self.pictures())
        height = max(one.height for one in drawn)
        return [one._replace(height=height) for one in drawn]

    def colours(self) -> Picture:
        """Every colour of them."""
        return all_states(self._theme, self.picture(self.end_s))


def gif(source: Source, path: str | PathLike[str], *, force: bool = False, **options: Any) -> Path:
    """Write the learner grid over a time as a GIF; returns the file.

    Parameters
    ----------
    source : tape, run folder or run
    path : path
        Ends in .gif.
    force : bool
        Replace what is there.
    **options
        As `Film` takes them: ``start_s``, ``end_s``, ``speed``, ``per_second``, ``theme``, ``width``.

    Raises
    ------
    ConfigError
        Another ending, a name that is taken, or numbers that make no film.
    """
    from workbench.views.raster import film

    target = _target(path, ".gif", force)
    made = Film(source, **options)
    with target as partial:
        film(made.whole(), made.colours(), made.every_s, partial)
    return target.path


def svg(source: Source, path: str | PathLike[str], *, what: str = "lanes", force: bool = False, **options: Any) -> Path:
    """Write lanes, or the learner grid at one time, as SVG; returns the file.

    Parameters
    ----------
    source : tape, run folder or run
    path : path
        Ends in .svg.
    what : str
        ``lanes``, or ``grid``: at the end of the time that is shown.
    force : bool
        Replace what is there.
    **options
        ``start_s``, ``end_s`` [s from the start of rounds], ``theme``, ``width`` [pixels]; of lanes ``learners``.

    Raises
    ------
    ConfigError
        Another ending, a name that is taken, or nothing that can be drawn.
    """
    target = _target(path, ".svg", force)
    text = svg_text(source, what, **options)
    with target as partial:
        partial.write_text(text, encoding="utf-8")
    return target.path


def svg_text(source: Source, what: str = "lanes", **options: Any) -> str:
    """What `svg` writes."""
    if what not in WHAT:
        raise ConfigError(f"what = {what!r}; allowed: {', '.join(WHAT)}")
    if what == "grid":
        made = Film(source, **options, speed=1e12)
        return to_svg(made.picture(made.end_s))
    return to_svg(_lanes(_tape(source), **options))


def _lanes(
    tape: xr.DataTree, start_s: float | None = None, end_s: float | None = None, theme: str = "light",
    width: int | None = None, learners: Sequence[int] | None = None,
) -> Picture:  # fmt: skip
    from workbench.views.figures.swimlanes import lanes_of, struck_in
    from workbench.views.lanes import Window
    from workbench.views.lanes_picture import WIDTH as LANES_WIDTH
    from workbench.views.lanes_picture import lanes_picture

    found, colours = tables_of(tape), theme_of(theme)
    low, high = _span(tape, start_s, end_s)
    window = Window(low, high, lanes_of(found, learners), colours)
    title = f"{_name(tape)} · {low:.2f} to {high:.2f} s"
    return lanes_picture(found, struck_in(bands(tape), window), window, title, width or LANES_WIDTH)


def _target(path: str | PathLike[str], suffix: str, force: bool) -> Target:
    target = Path(path)
    if target.suffix != suffix:
        raise ConfigError(f"{target} does not end in {suffix}; type {target.with_suffix(suffix)}")
    return Target(target, folder=False, force=force)


def _tape(source: Source) -> xr.DataTree:
    found = known(source)
    if not isinstance(found, xr.DataTree):
        raise ConfigError("pictures are drawn from a whole tape; give a tape, a run folder or a run")
    if not found["events"].sizes["event"]:
        raise ConfigError("this tape holds no event yet; wait until its run has begun")
    return found


def _span(tape: xr.DataTree, start_s: float | None, end_s: float | None) -> tuple[float, float]:
    whole = span_s(tape) or (0.0, 1.0)
    low, high = whole[0] if start_s is None else start_s, whole[1] if end_s is None else end_s
    if not low < high:
        raise ConfigError(f"from {low:g} s to {high:g} s is no time; the run is {whole[1]:.1f} s long")
    return low, high


def _name(tape: xr.DataTree) -> str:
    """The run, with what tells it from others."""
    config = tomllib.loads(str(tape.attrs.get("config") or ""))
    named = [
        str(tape.name or "run"),
        f"preset {config['preset']}" if config.get("preset") else "",
        f"seed {config['seed']}" if "seed" in config else "",
    ]
    return " · ".join(one for one in named if one)
