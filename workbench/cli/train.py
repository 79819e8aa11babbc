"""Train a run and record its tape.

Learners and syncer are the protocol's own machines and compute real gradients.
In virtual time only their clock and network are modelled; with --clock real they
are processes of this machine, which kills and stalls of a scenario strike; Ctrl-C
stops such a run in order.  The folder of the run holds config.toml, the journal
and the tape.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli import options
from workbench.config import RunConfig, presets

if TYPE_CHECKING:
    from workbench.simulate.faults import FaultPlan
    from workbench.simulate.training_run import Progress

ROWS = {
    "merges": "merges",
    "rounds": "rounds closed",
    "tokens_processed": "tokens processed",
    "tokens_merged": "tokens merged",
    "val_loss_first": "validation loss, first [nats/byte]",
    "val_loss_last": "validation loss, last [nats/byte]",
    "goodput": "goodput",
    "uptime": "uptime",
    "merge_availability": "merge availability",
    "participation": "participation",
    "wall_s": "wall time [s]",
    "tape": "tape",
}
"""Entries of the summary that the table shows, with their labels; --json has them all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench train``."""
    options.add_config(parser)
    options.add_faults(parser)
    parser.add_argument(
        "--clock", choices=("virtual", "real"), default="virtual", help="virtual (default), or real processes"
    )
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="folder of the run (default: a new one in runs/)")
    options.add_json(parser)
    lines = [f"  {name:<9} {c.learners} learners, {c.rounds} merges" for name, c in presets().items()]
    parser.epilog = "\n".join(["presets:", *lines])


def run(arguments: argparse.Namespace) -> int:
    """Train, print the summary, return 0."""
    config = options.config_of(arguments)
    out = options.out_of(arguments, config)
    faults = options.faults_of(arguments, config)
    for note in faults.notes:
        print(note, file=sys.stderr)
    code, found = (_real if arguments.clock == "real" else _virtual)(config, out, faults)
    if not found:
        return code

    from workbench.cli import output

    if arguments.json:
        output.print_json(found)
    else:
        output.console().print(summary_table(found, config))
    return code or (0 if is_balanced(found) else 1)


def _real(config: RunConfig, out: Path, faults: FaultPlan) -> tuple[int, dict[str, Any]]:
    from workbench.cli.train_real import train_real

    return train_real(config, out, faults)


def _virtual(config: RunConfig, out: Path, faults: FaultPlan) -> tuple[int, dict[str, Any]]:
    from workbench.analysis.summary import summary
    from workbench.cli import output
    from workbench.simulate.training_run import train_virtual
    from workbench.tape import open_tape

    with output.progress("merges") as report:
        trained = train_virtual(config, out, faults, lambda now: report(now.merges, config.rounds, remark(now)))
    return 0, {
        **summary(open_tape(trained.path)),
        "digest": f"{trained.digest:016x}",
        "virtual_s": trained.virtual_s,
        "wall_s": trained.wall_s,
        "tape": str(trained.path),
    }


def is_balanced(summary: dict[str, Any]) -> bool:
    """Return whether the token fates add up to the tokens that were processed."""
    fates = ("merged", "overwritten", "not_merged", "blended", "lost", "rolled_back", "local")
    total = sum(summary[f"tokens_{fate}"] for fate in fates)
    return math.isclose(total, summary["tokens_processed"], rel_tol=1e-9, abs_tol=1e-6)


def remark(now: Progress) -> str:
    """Return what stands beside the bar: virtual time and loss."""
    return f"{now.time_s:.1f} s virtual, loss {now.loss:.3f}" if now.loss is not None else f"{now.time_s:.1f} s virtual"


def summary_table(summary: dict[str, Any], config: RunConfig) -> Any:
    """Return the summary of a run as a table."""
    from workbench.cli import output

    title = f"{config.preset or 'run'}, {config.learners} learners, seed {config.seed}"
    return output.pairs(title, [(label, summary[key]) for key, label in ROWS.items() if key in summary])
