"""Make the keys of a run across machines: one pair for the syncer, one for
each learner, in a private folder.

A learner's machine needs learner-M.key and syncer.public in a folder with
mode 700, and nothing else; the syncer's machine keeps the whole. Pairs that
are there stay as they are.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from workbench.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench keys``."""
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where the keys lie (made with mode 700)")
    parser.add_argument("--learners", metavar="N", type=int, default=4, help="learners that get a pair (4)")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Make what is missing, say what goes where, return 0."""
    from workbench.cli import output
    from workbench.engine.key_folder import make_key_folder

    made = make_key_folder(arguments.folder, arguments.learners)
    if arguments.json:
        output.print_json({"folder": str(arguments.folder), "made": made})
    else:
        for line in lines_of(arguments.folder, made):
            output.console().print(line, soft_wrap=True)
    return 0


def lines_of(folder: Path, made: list[str]) -> list[str]:
    """Return what a person has to know of a folder of keys."""
    found: Any = ", ".join(made) if made else "nothing: all of them were there"
    return [
        f"{folder}: made {found}",
        f"each learner's machine needs two of the files: {folder}/learner-M.key and {folder}/syncer.public",
    ]
