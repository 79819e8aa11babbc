"""Take a snapshot of a run of real processes, and wait until it lies on disk.

A snapshot holds the syncer's and every learner's state at one consistent cut;
workbench resume RUN --snapshot N goes back to it. Runs take them by themselves
with --set snapshot_every=MERGES or --set snapshot_every_s=SECONDS.
"""

from __future__ import annotations

import argparse

from workbench.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench snapshot``."""
    options.add_run(parser)
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Take a snapshot, say its number, return 0."""
    from workbench.cli import output
    from workbench.engine.launch import attach

    run = attach(arguments.run)
    number = run.snapshot(who="cli")
    path = run.folder.snapshots / str(number)
    if arguments.json:
        output.print_json({"run": str(run.path), "snapshot": number, "path": str(path)})
    else:
        output.console().print(f"snapshot {number} of {run.path} lies in {path}")
    return 0
