"""Sample efficiency of runs: what a validation loss cost, and how two settings compare over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from workbench.analysis.arrays import efficiency as arrays
from workbench.analysis.arrays.intervals import log_ratio
from workbench.analysis.arrays.validation import first_reach
from workbench.analysis.from_tape import config_of, tables_of
from workbench.analysis.labels import Source, dataset
from workbench.config import ConfigError
from workbench.tape import open_tape

NAMES = {
    "loss": ("nat", "validation loss"),
    "tokens_processed": ("1", "tokens processed before the newest merge in the evaluated weights"),
    "tokens_merged": ("1", "tokens merged"),
    "time_s": ("s", "end of the evaluation, from the start of rounds"),
    "merges": ("1", "merges in the evaluated weights"),
    "rounds": ("1", "rounds opened until the newest of the merges"),
}
RunLike = str | PathLike[str] | xr.DataTree
"""A run folder, a tape's folder, or an open tape."""


def efficiency(source: Source) -> xr.Dataset:
    """Validation loss against tokens processed, tokens merged, time, merges and rounds, by evaluation."""
    return dataset("eval", arrays.efficiency(tables_of(source)), NAMES)


def tokens_to(source: Source, loss: float, of: str = "tokens_processed") -> float:
    """What a run had spent when it reached a validation loss for the first time.

    On straight lines between evaluations.

    Parameters
    ----------
    source : tape or tables
    loss : float
        [nat]
    of : str
        ``tokens_processed``, ``tokens_merged``, ``time_s`` [s], ``merges`` or ``rounds``.

    Returns
    -------
    float
        NaN if the loss was not reached.

    Raises
    ------
    ConfigError
        For another ``of``.
    """
    check_axis(of)
    found = arrays.efficiency(tables_of(source))
    return first_reach(found["loss"], found[of], loss)


def check_axis(of: str) -> None:
    """Refuse what a loss cannot be set against."""
    if of not in arrays.AXES:
        raise ConfigError(f"{of!r} is nothing that a loss is set against; allowed: {', '.join(arrays.AXES)}")


class EfficiencyRatio(NamedTuple):
    """How much of what runs A needed for a loss runs B needed.

    Attributes
    ----------
    ratio, low, high : float
        Geometric mean of A over that of B, and its interval; NaN where it cannot be told.
    loss : float
        [nat]
    of, method : str
        What was counted; ``paired t`` (the same seeds on both sides), ``Welch t`` or ``none``, on logarithms.
    level : float
        Coverage of the interval.
    a, b : tuple of float
        What each run needed, NaN for a run that did not reach the loss.
    unreached_runs : tuple of str
        Runs that never reached the loss, as they were given: with any there is no ratio.
    """

    ratio: float
    low: float
    high: float
    loss: float
    of: str
    method: str
    level: float
    a: tuple[float, ...]
    b: tuple[float, ...]
    unreached_runs: tuple[str, ...] = ()

    @property
    def unreached(self) -> tuple[int, int]:
        """Runs on each side that did not reach the loss: with any there is no ratio."""
        return sum(map(math.isnan, self.a)), sum(map(math.isnan, self.b))

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {**self._asdict(), "n_a": len(self.a), "n_b": len(self.b), "unreached": list(self.unreached)}


def efficiency_ratio(
    runs_a: RunLike | Sequence[RunLike],
    runs_b: RunLike | Sequence[RunLike],
    loss: float,
    of: str = "tokens_processed",
    level: float = 0.95,
) -> EfficiencyRatio:
    """Compare what runs A and runs B needed to reach a validation loss, over seeds.

    Ratio of the geometric means, with a t-interval on the logarithms: paired by seed where both sides have the same
    seeds, once each, else Welch's.  A side with one run has no interval.

    Parameters
    ----------
    runs_a, runs_b : run or sequence of runs
        Run folders or open tapes that differ in their seeds.
    loss : float
        [nat]
    of : str
        See `tokens_to`.
    level : float
        Coverage, between 0 and 1.

    Raises
    ------
    ConfigError
        No run on a side, or an ``of`` or ``level`` that cannot be.

    Examples
    --------
    >>> wb.efficiency_ratio(["runs/a-0", "runs/a-1"], ["runs/b-0", "runs/b-1"], loss=2.0)   # doctest: +SKIP
    """
    check_axis(of)
    if not 0 < level < 1:
        raise ConfigError(f"level = {level}; allowed: between 0 and 1, for example 0.95")
    one, other = opened(runs_a), opened(runs_b)
    names = {id(tape): name for runs, side in ((runs_a, one), (runs_b, other)) for name, tape in _named(runs, side)}
    if not one or not other:
        raise ConfigError(f"{len(one)} runs against {len(other)}; expected at least one on each side")
    seeds = [[config_of(tape).seed for tape in side] for side in (one, other)]
    paired = sorted(seeds[0]) == sorted(seeds[1]) and len(set(seeds[0])) == len(seeds[0])
    if paired:
        one, other = (sorted(side, key=lambda tape: config_of(tape).seed) for side in (one, other))
    a, b = (tuple(tokens_to(tape, loss, of) for tape in side) for side in (one, other))
    if any(map(math.isnan, (*a, *b))) or min(*a, *b) <= 0:
        never = tuple(names[id(t)] for t, took in zip((*one, *other), (*a, *b), strict=True) if math.isnan(took))
        return EfficiencyRatio(math.nan, math.nan, math.nan, loss, of, "none", level, a, b, never)
    found = log_ratio(a, b, paired=paired, level=level)
    return EfficiencyRatio(found.middle, found.low, found.high, loss, of, found.method, level, a, b)


def _named(runs: RunLike | Sequence[RunLike], tapes: Sequence[xr.DataTree]) -> Iterator[tuple[str, xr.DataTree]]:
    """Tapes with the names that they were given by: a path, else the name of the tape."""
    given = [runs] if isinstance(runs, str | PathLike | xr.DataTree) else list(runs)
    for run, tape in zip(given, tapes, strict=True):
        yield fspath(run) if isinstance(run, str | PathLike) else str(tape.name), tape


def opened(runs: RunLike | Sequence[RunLike]) -> list[xr.DataTree]:
    """Tapes of one run or of several."""
    given = [runs] if isinstance(runs, str | PathLike | xr.DataTree) else list(runs)
    return [run if isinstance(run, xr.DataTree) else open_tape(Path(run)) for run in given]
