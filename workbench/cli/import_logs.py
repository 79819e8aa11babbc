"""Make a tape of the event logs of another trainer: JSON lines, each with a
time, a replica, and a step, or a committed sync with its participants.

Clocks that the log lacks are derived from what it proves: a replica's lines
follow each other by their times; a sync comes behind every participant's
latest step before it, and before their next; the rest is concurrent. The tape
says so, and names what it cannot tell; inspect, compare, export and
tape.wb.past(...) work on it.

"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from workbench.cli import options
from workbench.tape.foreign.mapping import KEYS

__doc__ += "MAP.toml names the fields of a line by what they mean:\n\n" + "\n".join(
    f"  {line}" for line in KEYS.splitlines()
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench import``."""
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+", help="logs, in any order")
    parser.add_argument("--map", metavar="MAP.toml", type=Path, required=True, help="fields by what they mean")
    parser.add_argument("--out", metavar="RUN", type=Path, required=True, help="folder of the run; new or empty")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Import, and say what the tape holds."""
    from workbench.cli import output, words
    from workbench.tape.foreign.importing import import_logs

    found = import_logs(arguments.files, arguments.map, arguments.out)
    if arguments.json:
        output.print_json({**found._asdict(), "path": str(found.path)})
        return 0
    screen = output.console()
    screen.print(
        f"{found.path}: {words.plural(len(found.replicas), 'replica')}, {words.plural(found.steps, 'step')}, "
        f"{words.plural(found.syncs, 'sync')} from {words.plural(found.lines, 'line')}"
        f"{f', {found.skipped:,} of neither' if found.skipped else ''}"
        f"{f', {found.torn:,} cut off at the end of a file' if found.torn else ''}",
        soft_wrap=True,
    )
    screen.print(f"cannot be told: {', '.join(found.untold)}", style="dim")
    screen.print(f"more: workbench inspect {shlex.quote(str(found.path))}", style="dim", soft_wrap=True)
    return 0
