"""End a run of real processes in order: learners leave, the tape is closed."""

from __future__ import annotations

import argparse

from workbench.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench stop``."""
    options.add_run(parser)
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Stop the run, wait for its end, return its exit code."""
    from workbench.cli import output
    from workbench.engine.launch import attach

    run = attach(arguments.run)
    run.stop()
    code, line = run.outcome()
    if arguments.json:
        output.print_json({"run": str(run.path), "code": code, "line": line})
    else:
        output.console().print(f"{run.path} has ended" + (f": {line}" if line else ""))
    return code
