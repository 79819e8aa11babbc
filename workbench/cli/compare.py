"""Two to six runs side by side; the first is what the others are compared with.

Shown are the settings that differ, the first divergence of each run from the
first, figures at the end with their differences, intervals over runs that
differ in their seed only, and the losses on one axis. Related runs (a what-if
and its parent) are compared in what their programs read, event by event,
others merge by merge. With --json `first_divergence` is null if nothing
differs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli import options
from workbench.cli.numbers import numbers_in
from workbench.config import ConfigError

AXES = ("tokens_processed", "tokens_merged", "time_s", "merges", "rounds")
"""Axes that the losses are shown on."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench compare``."""
    parser.add_argument("runs", metavar="RUN", type=Path, nargs="+", help="folders of two to six runs")
    parser.add_argument(
        "--axis", choices=AXES, default=AXES[0], metavar="AXIS", help=f"what losses are set against: {', '.join(AXES)}"
    )
    parser.add_argument("--reach", metavar="LOSS,…", help="losses of which to tell what they took")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison."""
    reach = numbers_in(arguments.reach, "--reach 2.0,1.8")
    if len(arguments.runs) < 2:
        raise ConfigError(f"one run has nothing to be compared with; type workbench compare {arguments.runs[0]} RUN")

    from workbench.analysis.comparing.comparison import compare
    from workbench.cli import output
    from workbench.cli.pages import compare as page

    found = compare(*arguments.runs, axis=arguments.axis, reach=reach)
    if arguments.json:
        output.print_json(found.to_json())
        return 0
    screen = output.console()
    for part in page.show(found, screen.width):
        screen.print(part)
    return 0
