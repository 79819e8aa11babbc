"""Whole stories of a run, one for each table of ``workbench inspect``: plain dictionaries, units in the keys.

A report is what a reader asks first (totals, spreads, causes, what to do), the labelled Datasets of
`workbench.analysis` are the rows behind it.
"""

from collections.abc import Callable
from typing import Any

from workbench.analysis.reports import goodput, ledger, overview, participation, rounds, staleness, validation

REPORTS: dict[str, Callable[..., dict[str, Any]]] = {
    "overview": overview.report,
    "ledger": ledger.report,
    "participation": participation.report,
    "staleness": staleness.report,
    "goodput": goodput.report,
    "rounds": rounds.report,
    "validation": validation.report,
}
"""Reports by name; each takes a tape, or tables and the configuration."""

ROWS = {
    "ledger": "token_fates_by_round",
    "participation": "participation",
    "staleness": "staleness",
    "goodput": "goodput",
    "rounds": "rounds",
    "validation": "validation_curve",
}
"""Accessor with the rows behind each report, a key of `workbench.analysis.ACCESSORS`."""

NEEDS = {**ROWS, "staleness": "behind"}
"""Accessor without which a tape cannot give the report: see ``tape.wb.untold``."""

__all__ = ["NEEDS", "REPORTS", "ROWS"]
