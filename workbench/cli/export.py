"""Write a tape in another program's format.

perfetto: a Chrome trace in JSON for ui.perfetto.dev (drop the file on the
page); steps, rounds with their states, merges, arrows from contributions to
merges to folds, faults. A name that ends in .gz is compressed.
netcdf: one file, a group for each table; xarray.open_datatree reads it.
csv: a folder with a file for each table; a cell of text that a spreadsheet
would take for a formula begins with an apostrophe.
gif: the learner grid over the run, or over --from and --to, 20 s long at most
unless --speed says how many seconds of the run a second shows.
svg: the lanes of that time, or with --picture grid the learners at its end.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli import options
from workbench.config import ConfigError

TABLES = ("perfetto", "netcdf", "csv")
"""Keys of `workbench.analysis.exporting.export.WRITERS`."""
PICTURES = ("gif", "svg")
FLAGS = {"start_s": "--from", "end_s": "--to", "speed": "--speed", "picture": "--picture", "theme": "--theme"}
"""Of pictures alone."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench export``."""
    options.add_run(parser)
    parser.add_argument("--format", choices=(*TABLES, *PICTURES), required=True, help="what to write")
    parser.add_argument("--out", metavar="PATH", required=True, help="file, or folder for csv; must not exist yet")
    parser.add_argument("--force", action="store_true", help="replace what is there (a folder of CSV files alone)")
    parser.add_argument(
        "--from",
        metavar="S",
        type=float,
        dest="start_s",
        help="gif, svg: from this time on [s from the start of rounds]",
    )
    parser.add_argument("--to", metavar="S", type=float, dest="end_s", help="gif, svg: to this one")
    parser.add_argument("--speed", metavar="X", type=float, help="gif: seconds of the run in one of the film")
    parser.add_argument("--picture", choices=("lanes", "grid"), help="svg: what is drawn (default: lanes)")
    parser.add_argument("--theme", choices=("light", "dark"), help="gif, svg (default: light)")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the file or the folder."""
    from workbench.cli import output

    path = _written(arguments)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files)
    if arguments.json:
        output.print_json({"format": arguments.format, "out": str(path), "files": len(files), "bytes": size})
    else:
        what = f"{len(files)} files" if path.is_dir() else "one file"
        output.console().print(f"{path}: {what}, {size:,} bytes", soft_wrap=True)
    return 0


def _written(arguments: argparse.Namespace) -> Path:
    form, out, force = arguments.format, arguments.out, arguments.force
    taken = {"gif": ("start_s", "end_s", "theme", "speed"), "svg": ("start_s", "end_s", "theme", "picture")}
    asked = {name: vars(arguments)[name] for name in FLAGS if vars(arguments)[name] is not None}
    wrong = [FLAGS[name] for name in asked if name not in taken.get(form, ())]
    if wrong:
        raise ConfigError(f"{', '.join(wrong)} says nothing of --format {form}; leave it out")
    if form in TABLES:
        from workbench.analysis.exporting.export import export

        return export(arguments.run, form, out, force=force)
    from workbench.views.pictures import gif, svg

    if form == "gif":
        return gif(arguments.run, out, force=force, **asked)
    return svg(arguments.run, out, what=asked.pop("picture", "lanes"), force=force, **asked)
