"""What a run did, told from its tape; while the run goes on, too.

Without a word an overview; with one, that table.  `--json` holds everything:
the same numbers and the rows behind them.
Exit code 1: the token ledger does not balance.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli import options
from workbench.cli.numbers import numbers_in
from workbench.config import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    import xarray as xr

TABLES = ("ledger", "participation", "staleness", "goodput", "rounds", "validation")
"""Tables that ``workbench inspect`` shows, keys of `workbench.analysis.reports.REPORTS`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench inspect``."""
    options.add_run(parser)
    parser.add_argument("table", nargs="?", choices=TABLES, metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument(
        "--rows", metavar="N", type=int, help="the raw rows of TABLE instead: the first N, -N the last, 0 all"
    )
    parser.add_argument("--reach", metavar="LOSS,…", help="losses that 'validation' tells the tokens for")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a report of the run; return 1 if its token ledger does not balance."""
    losses = checked(arguments)

    from workbench.analysis.reports import REPORTS, imported
    from workbench.analysis.reports.facts import facts
    from workbench.cli.opening import opened
    from workbench.tape import being_written

    written = being_written(arguments.run)
    tape = opened(arguments.run)
    about = facts(tape, written=written)
    refuse_untold(arguments, tape)
    more: dict[str, Any] = {"losses": losses} if arguments.table == "validation" else {}
    whole = imported.report if about["imported"] else REPORTS["overview"]
    report = (REPORTS[arguments.table] if arguments.table else whole)(tape, **more)
    report["run"] = about | {"outcome": None if written else outcome_of(arguments.run)}
    if arguments.json:
        print_json(arguments, tape, report)
    else:
        show(arguments, tape, report)
    return 0 if is_balanced(arguments.table, report) else 1


def refuse_untold(arguments: argparse.Namespace, tape: xr.DataTree) -> None:
    """Refuse a table that the tape cannot give.

    Raises
    ------
    TapeError
        With the reason.
    """
    from workbench.analysis.reports import NEEDS
    from workbench.tape import TapeError

    reason = tape.wb.untold.get(NEEDS.get(arguments.table, ""))
    if reason:
        raise TapeError(f"{arguments.run} cannot tell {arguments.table}: {reason}")


def outcome_of(run: Path) -> dict[str, Any] | None:
    """Return exit code and last line of a run of real processes, as its supervisor left them; None if it left none."""
    from workbench.engine.layout import read_outcome

    ended = read_outcome(run)
    return None if ended is None else {"code": ended[0], "line": ended[1]}


def checked(arguments: argparse.Namespace) -> list[float]:
    """Return the losses to reach.

    Raises
    ------
    ConfigError
        For flags that do not go with the table, or losses that are no numbers.
    """
    if arguments.rows is not None and arguments.table is None:
        raise ConfigError(f"--rows needs a table; type one of {', '.join(TABLES)} behind the run")
    if arguments.reach is None:
        return []
    if arguments.table != "validation":
        raise ConfigError("--reach goes with validation; type workbench inspect RUN validation --reach 2.0,1.8")
    return numbers_in(arguments.reach, "--reach 2.0,1.8")


def is_balanced(table: str | None, report: dict[str, Any]) -> bool:
    """Return whether the report says nothing against the token ledger."""
    ledger = report if table == "ledger" else report.get("ledger", {})
    return bool(ledger.get("balanced", True))


def rows_of(table: str, tape: xr.DataTree, rows: int) -> xr.Dataset:
    """Return the rows behind a table."""
    from workbench.analysis import ACCESSORS
    from workbench.analysis.reports import ROWS
    from workbench.cli.rows import limited

    return limited(ACCESSORS[ROWS[table]](tape), rows)


def print_json(arguments: argparse.Namespace, tape: xr.DataTree, report: dict[str, Any]) -> None:
    """Print the report, and all rows behind it unless --rows asks for some."""
    from workbench.cli import output

    found = {"path": str(arguments.run), "table": arguments.table or "overview", **report}
    if arguments.table:
        found["rows"] = rows_of(arguments.table, tape, arguments.rows or 0).to_dict()
    output.print_json(found)


def show(arguments: argparse.Namespace, tape: xr.DataTree, report: dict[str, Any]) -> None:
    """Print the report, or the rows that --rows asks for, as wide as the terminal."""
    from workbench.cli import output
    from workbench.cli.pages import header

    screen = output.console()
    for part in header.show(str(arguments.run), report["run"]):
        screen.print(part)
    for part in parts(arguments, tape, report, screen.width):
        screen.print(part)
    if arguments.table is None and not report["run"]["imported"]:
        screen.print(f"\nmore: workbench inspect {shlex.quote(str(arguments.run))} TABLE", style="dim", soft_wrap=True)
        screen.print(f"TABLE is {', '.join(TABLES[:-1])} or {TABLES[-1]}", style="dim")


def parts(arguments: argparse.Namespace, tape: xr.DataTree, report: dict[str, Any], width: int) -> Iterator[Any]:
    """Yield what to print below the header."""
    if arguments.rows is not None:
        from workbench.cli import rows

        yield from rows.tables(arguments.table, rows_of(arguments.table, tape, arguments.rows), width)
    else:
        from importlib import import_module

        page = arguments.table or ("imported" if report["run"]["imported"] else "overview")
        yield from import_module(f"workbench.cli.pages.{page}").show(report, width)
