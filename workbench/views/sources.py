"""What a figure may be drawn from, and what is read from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from workbench.analysis import ACCESSORS
from workbench.analysis.arrays.presence import faults
from workbench.analysis.arrays.tables import NS, Array, Tables, run_span, since_began
from workbench.analysis.from_tape import tables_of
from workbench.config import ConfigError
from workbench.tape import open_tape
from workbench.views.states import fault_name

Known = xr.DataTree | xr.Dataset | Tables
"""A tape, a Dataset of an analysis, or tables."""
Source = Any
"""`Known`, the folder of a run, or what has a ``tape``: a run, a counterfactual."""


class Band(NamedTuple):
    """A fault that acted.

    Attributes
    ----------
    process : int
        Its target, by process number.
    kind : str
        ``kill``, ``nan``, …
    name : str
        ``kill L1``.
    start_s, end_s : float
        From the start of rounds [s]; equal for one that acts once.
    """

    process: int
    kind: str
    name: str
    start_s: float
    end_s: float


def known(source: Source) -> Known:
    """Open what is a folder or has a tape.

    Raises
    ------
    ConfigError
        It is nothing that can be drawn.
    TapeError
        There is no tape.
    """
    if isinstance(source, xr.DataTree | xr.Dataset):
        return source
    if isinstance(source, Mapping) and "events" in source:
        return source
    if hasattr(source, "tape"):
        tape: xr.DataTree = source.tape
        return tape
    if isinstance(source, str | PathLike):
        return open_tape(Path(fspath(source)))
    raise ConfigError(f"a {type(source).__name__} cannot be drawn; give a tape, a run folder or a run")


def several(source: Source) -> dict[str, Known]:
    """One or more sources by name: a mapping, a sequence, or a single one, which is called by its own name."""
    if isinstance(source, Mapping) and "events" not in source and not isinstance(source, xr.Dataset):
        return {_plain(name): known(one) for name, one in source.items()}
    if isinstance(source, Sequence) and not isinstance(source, str):
        found: dict[str, Known] = {}
        for one in map(known, source):
            name = _name(one)
            found[name if name not in found else f"{name} ({len(found) + 1})"] = one
        return found
    single = known(source)
    return {_name(single): single}


def _name(source: Known) -> str:
    return _plain(source.name) if isinstance(source, xr.DataTree) and source.name else "run"


def _plain(name: Any) -> str:
    """A name as letters: what looks like mathematics would make a page fetch a typesetter."""
    return str(name).replace("$$", "$ $").replace("\\[", "[").replace("\\(", "(")


def dataset(source: Known, analysis: str, *needed: str, **options: Any) -> xr.Dataset:
    """The Dataset that a figure draws: itself, or the analysis of that name.

    Raises
    ------
    ConfigError
        A Dataset of another analysis.
    """
    if not isinstance(source, xr.Dataset):
        made: xr.Dataset = ACCESSORS[analysis](source, **options)
        return made
    missing = [name for name in needed if name not in source]
    if missing:
        has = ", ".join(map(str, source.data_vars)) or "nothing"
        raise ConfigError(f"the Dataset has no {', '.join(missing)}, only {has}; expected one of tape.wb.{analysis}()")
    return source


def tables(source: Source, figure: str) -> Tables:
    """Tables of a source.

    Raises
    ------
    ConfigError
        It is a Dataset, which has none.
    """
    found = known(source)
    if isinstance(found, xr.Dataset):
        raise ConfigError(f"{figure} is drawn from a whole tape, not from a Dataset; type wb.views.{figure}(tape)")
    return tables_of(found)


def span_s(source: Known) -> tuple[float, float] | None:
    """From the start of rounds (0) to the close of the run [s]; None for a Dataset, which does not know it."""
    if isinstance(source, xr.Dataset):
        return None
    began, closed = run_span(tables_of(source))
    return 0.0, (closed - began) * NS


def bands(source: Known) -> list[Band]:
    """Faults that acted, in order of time; none for a Dataset."""
    if isinstance(source, xr.Dataset):
        return []
    found = tables_of(source)
    struck, (_, closed) = faults(found), run_span(found)
    order = np.argsort(struck.start_ns, kind="stable")
    start_s = since_began(found, struck.start_ns)
    end_s = since_began(
        found, np.clip(struck.end_ns, struck.start_ns, max(closed, int(struck.start_ns.max(initial=0))))
    )
    return [
        Band(process, kind, fault_name(kind, process), float(start_s[i]), float(end_s[i]))
        for i in order.tolist()
        for process, kind in [(int(struck.process[i]), str(struck.kind[i]))]
    ]


def rounds_at(source: Known, time_s: Array) -> Array:
    """Round of the newest merge at each time, -1 before the first."""
    found = tables_of(source)  # type: ignore[arg-type]
    times, rounds = merged_s(found), found["merges"]["round"]
    reached = np.r_[-1, np.maximum.accumulate(rounds)] if len(times) else np.array([-1])
    return np.asarray(reached[np.searchsorted(times, time_s, "right")])


def merged_s(source: Tables) -> Array:
    """When each merge was done [s from the start of rounds], (merge,)."""
    return np.asarray(since_began(source, source["events"]["time_ns"][source["merges"]["event"]]))
