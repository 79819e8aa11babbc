"""Tables of what a run did, from its tape; while the run goes on, too.

Without a word an overview; with one, that analysis in full.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.cli import options

if TYPE_CHECKING:
    import xarray as xr

TABLES = ("ledger", "participation", "staleness", "goodput", "rounds", "validation")
"""Analyses that ``workbench inspect`` shows, keys of `workbench.analysis.ACCESSORS`."""

UNITS = {
    "tokens_": "tokens",
    "val_loss_": "nats/byte",
    "wall_s": "s",
    "time_s": "s",
}
"""Unit by beginning of a summary's key; a trailing ``_s`` says it already."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench inspect``."""
    options.add_run(parser)
    names = f"{', '.join(TABLES)}: one analysis in full; without it an overview"
    parser.add_argument("table", nargs="?", choices=TABLES, metavar="TABLE", help=names)
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the overview or one analysis, return 0."""
    from workbench.analysis import ACCESSORS
    from workbench.analysis.summary import summary
    from workbench.cli import output
    from workbench.tape import open_tape

    tape = open_tape(arguments.run)
    result = ACCESSORS[arguments.table](tape) if arguments.table else summary(tape)
    if arguments.json:
        output.print_json(plain(result))
        return 0
    screen = output.console()
    for part in parts(arguments.table or str(arguments.run), result):
        screen.print(part)
    if arguments.table is None:
        for part in by_learner(ACCESSORS["participation"](tape), ACCESSORS["goodput"](tape)):
            screen.print(part)
        screen.print(f"\nmore: workbench inspect {arguments.run} {'|'.join(TABLES)}")
    return 0


def parts(title: str, result: Any) -> Any:
    """Yield what to print of an analysis: a Dataset's tables or a mapping's labels and values."""
    from workbench.cli import datasets, output

    if isinstance(result, Mapping) and not hasattr(result, "data_vars"):
        yield output.pairs(title, [(label(key), value) for key, value in result.items()])
    else:
        yield from datasets.tables(title, result)


def by_learner(*results: xr.Dataset) -> Any:
    """Yield one table of everything that the analyses know of each learner."""
    from workbench.cli import datasets

    columns = [
        variable for result in results for variable in result.data_vars.values() if variable.dims == ("learner",)
    ]
    if columns:
        yield ""
        yield from datasets.vectors("learners", columns)


def label(key: str) -> str:
    """Return a summary's key as words, with its unit."""
    unit = next((unit for start, unit in UNITS.items() if key.startswith(start)), "")
    words = key.removesuffix("_s").replace("val_loss", "validation_loss").replace("_", " ")
    return f"{words} [{unit}]" if unit else words


def plain(result: Any) -> Any:
    """Return an analysis as plain data; a Dataset as its own dictionary form, attributes included."""
    return result.to_dict() if hasattr(result, "to_dict") else result
