"""What happened between two times of a run: counts, means and totals of everything that is measured, with units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from workbench.analysis.arrays.presence import faults
from workbench.analysis.arrays.tables import NS, Array, Tables, events_of, run_span, since_began
from workbench.analysis.arrays.time_shares import shares_within
from workbench.analysis.from_tape import tables_of
from workbench.analysis.labels import Source, attrs
from workbench.config import ConfigError
from workbench.protocol.records import Kind
from workbench.tape.schema import DROPPED, MERGED

FROM = "s from the start of rounds"
"""What the times of a part count from, and their unit."""


class _Row(NamedTuple):
    """One quantity: how often, its mean and its total, with their units; a loss has no total."""

    label: str
    number: int
    mean: float = np.nan
    mean_unit: str = ""
    total: float = np.nan
    total_unit: str = ""


def within(source: Source, start_s: float, end_s: float) -> xr.Dataset:
    """Counts, means and totals of a part of a run.

    Parameters
    ----------
    source : tape or tables
    start_s, end_s : float
        [s from the start of rounds]

    Returns
    -------
    xarray.Dataset
        By quantity: ``count``; ``mean`` and ``total`` with ``mean_unit`` and ``total_unit`` (NaN and "" where there is
        none). A step counts, with its tokens, where it ends; of goodput an edge takes its part. Coordinate
        ``quantity`` holds the names.

    Raises
    ------
    ConfigError
        The end is not behind the start.
    """
    if not start_s < end_s:
        raise ConfigError(f"from {start_s:g} s to {end_s:g} s is no time; give an end behind the start")
    tables, untold = tables_of(source), _untold(source)
    rows = [*_steps(tables, start_s, end_s), *_merges(tables, start_s, end_s), *_contributions(tables, start_s, end_s)]
    if "goodput" not in untold:
        rows.append(_goodput(tables, start_s, end_s))
    rows.append(
        _Row("faults injected", int(np.count_nonzero(_inside(tables, faults(tables).start_ns, start_s, end_s))))
    )
    columns = {
        "count": ("1", "how many"), "mean": ("as in mean_unit", "mean"), "mean_unit": ("1", "unit of the mean"),
        "total": ("as in total_unit", "total, where it means something"), "total_unit": ("1", "unit of the total"),
    }  # fmt: skip
    data = {
        name: ("quantity", [getattr(row, "number" if name == "count" else name) for row in rows], attrs(told))
        for name, told in columns.items()
    }
    return xr.Dataset(
        data,
        coords={"quantity": [row.label for row in rows]},
        attrs={"start_s": start_s, "end_s": end_s, "times": FROM},
    )


def _untold(source: Source) -> dict[str, str]:
    return dict(source.wb.untold) if isinstance(source, xr.DataTree) else {}


def _inside(tables: Tables, time_ns: Array, start_s: float, end_s: float) -> Array:
    at = since_began(tables, time_ns)
    return np.asarray((at >= start_s) & (at < end_s))


def _mean(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")


def _steps(tables: Tables, start_s: float, end_s: float) -> list[_Row]:
    steps, length = tables["steps"], end_s - start_s
    mine = _inside(tables, steps["end_ns"], start_s, end_s)
    took = (steps["end_ns"][mine] - steps["start_ns"][mine]) * NS
    tokens, loss = float(steps["tokens"][mine].sum()), steps["loss"][mine].astype(float)
    count, mean = len(took), _mean(loss)
    return [
        _Row("inner steps", count, _mean(took), "s a step", float(took.sum()), "learner s"),
        _Row("tokens processed", count, tokens / length, "tokens/s", tokens, "tokens"),
        _Row("training loss", int(np.isfinite(loss).sum()), mean, "nat per byte"),
    ]


def _merges(tables: Tables, start_s: float, end_s: float) -> list[_Row]:
    events, merges, length = tables["events"], tables["merges"], end_s - start_s
    mine = _inside(tables, events["time_ns"][merges["event"]], start_s, end_s)
    count, norms = int(np.count_nonzero(mine)), merges["norm"][mine].astype(float)
    evaluated = events_of(tables, Kind.EVALUATED)
    evaluated = evaluated[_inside(tables, events["time_ns"][evaluated], start_s, end_s)]
    opened = events_of(tables, Kind.ROUND_OPENED)
    rounds = int(np.count_nonzero(_inside(tables, events["time_ns"][opened], start_s, end_s)))
    return [
        _Row("validation loss", len(evaluated), _mean(events["value"][evaluated].astype(float)), "nat per byte"),
        _Row("rounds opened", rounds, rounds / length, "1/s"),
        _Row("merges", count, count / length, "1/s"),
        _Row("norm of the outer gradient", int(np.isfinite(norms).sum()), _mean(norms), "1"),
    ]


def _contributions(tables: Tables, start_s: float, end_s: float) -> list[_Row]:
    rows, events, length = tables["contributions"], tables["events"], end_s - start_s
    came = rows["arrival_ns"] >= 0
    came &= _inside(tables, rows["arrival_ns"], start_s, end_s)
    size = float(np.maximum(rows["bytes"][came], 0).sum())
    merged = (rows["fate"] == MERGED) & (rows["merge"] >= 0)
    merged_ns = events["time_ns"][tables["merges"]["event"][rows["merge"][merged]]]
    lag = (merged_ns - rows["captured_ns"][merged]) * NS
    here = _inside(tables, merged_ns, start_s, end_s)
    lag = lag[here & (rows["captured_ns"][merged] >= 0)]
    merges = int(np.count_nonzero(_inside(tables, events["time_ns"][tables["merges"]["event"]], start_s, end_s)))
    taken, dropped = int(np.count_nonzero(here)), int(np.count_nonzero(came & (rows["fate"] == DROPPED)))
    each = taken / merges if merges else float("nan")
    return [
        _Row("contributions received", int(np.count_nonzero(came)), size / length, "B/s", size, "B"),
        _Row("contributions merged", taken, each, "learners a merge"),
        _Row("contributions not merged", dropped, dropped / length, "1/s"),
        _Row("lag from capture to merge", len(lag), _mean(lag), "s", float(lag.sum()), "s"),
    ]


def _goodput(tables: Tables, start_s: float, end_s: float) -> _Row:
    began, _ = run_span(tables)
    low, high = (began + round(time_s / NS) for time_s in (start_s, end_s))
    found = shares_within(tables, [(low, high)])[0]
    there = int(np.count_nonzero(found.allocated_ns > 0))
    useful_s = float(found.useful_ns.sum() * NS)
    return _Row("goodput (of so many learners)", there, found.goodput, "1", useful_s, "learner s")
