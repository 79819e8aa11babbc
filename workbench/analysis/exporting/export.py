"""`export`: a tape in another program's format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import xarray as xr

from workbench.analysis.efficiencies import RunLike, opened
from workbench.analysis.exporting import csv_tables, netcdf, perfetto
from workbench.analysis.exporting.target import Target
from workbench.config import ConfigError

WRITERS: dict[str, Callable[[xr.DataTree, Path], None]] = {
    "perfetto": perfetto.write,
    "netcdf": netcdf.write,
    "csv": csv_tables.write,
}
"""Formats, with what writes each: a file, for ``csv`` a folder."""


def export(run: RunLike, format: str, out: str | Path, *, force: bool = False) -> Path:
    """Write a tape in another format.

    Parameters
    ----------
    run : path or xarray.DataTree
        Run folder, tape, or an open tape.
    format : str
        ``perfetto``: a Chrome trace in JSON, which ui.perfetto.dev opens (compressed if the name ends in ``.gz``);
        ``netcdf``: one file with a group for each table, which `xarray.open_datatree` reads back; ``csv``: a folder
        with a file for each table.
    out : path
        File, or folder for ``csv``.
    force : bool
        Replace what is there.

    Returns
    -------
    Path
        What was written; it appears under its name when it is whole.

    Raises
    ------
    ConfigError
        An unknown format, or a name that is taken or cannot be written.
    TapeError
        There is no tape.

    Examples
    --------
    >>> wb.export("runs/first", "perfetto", "first.json")   # doctest: +SKIP
    """
    if format not in WRITERS:
        raise ConfigError(f"format {format!r} is unknown; allowed: {', '.join(WRITERS)}; pictures: wb.views")
    target = Target(Path(out), folder=format == "csv", force=force)
    (tape,) = opened(run)
    with target as partial:
        WRITERS[format](tape, partial)
    return target.path
