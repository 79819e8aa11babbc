"""Write a tape in another program's format.

perfetto: a Chrome trace in JSON for ui.perfetto.dev (drop the file on the
page); steps, rounds with their states, merges, arrows from contributions to
merges to folds, faults. A name that ends in .gz is compressed.
netcdf: one file, a group for each table; xarray.open_datatree reads it.
csv: a folder with a file for each table; a cell of text that a spreadsheet
would take for a formula begins with an apostrophe.
"""

from __future__ import annotations

import argparse

from workbench.cli import options

FORMATS = ("perfetto", "netcdf", "csv")
"""Keys of `workbench.analysis.exporting.export.WRITERS`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench export``."""
    options.add_run(parser)
    parser.add_argument("--format", choices=FORMATS, required=True, help="what to write")
    parser.add_argument("--out", metavar="PATH", required=True, help="file, or folder for csv; must not exist yet")
    parser.add_argument("--force", action="store_true", help="replace what is there (a folder of CSV files alone)")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the file or the folder."""
    from workbench.analysis.exporting.export import export
    from workbench.cli import output

    path = export(arguments.run, arguments.format, arguments.out, force=arguments.force)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files)
    if arguments.json:
        output.print_json({"format": arguments.format, "out": str(path), "files": len(files), "bytes": size})
    else:
        what = f"{len(files)} files" if path.is_dir() else "one file"
        output.console().print(f"{path}: {what}, {size:,} bytes", soft_wrap=True)
    return 0
