"""Train a run and record its tape.

A supervisor starts a syncer, an evaluator and the learners as processes of
this machine; Ctrl-C stops them in order. A run whose terminal is gone goes on
until `workbench stop`. With --clock virtual the same protocol runs in this
process: its machines compute real gradients, and only their clock and network
are modelled. The folder of the run holds config.toml, the journal and the tape.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli import options
from workbench.cli.key_list import listing
from workbench.config import RunConfig, presets
from workbench.config.idle import idle_in

if TYPE_CHECKING:
    from collections.abc import Callable

    import xarray as xr

    from workbench.protocol.faults import FaultPlan
    from workbench.simulate.training_run import Progress, TrainedRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench train``."""
    options.add_config(parser)
    options.add_faults(parser)
    parser.add_argument(
        "--clock", choices=("real", "virtual"), default="real", help="real processes (default), or virtual time"
    )
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="folder of the run (default: a new one in runs/)")
    parser.add_argument("--keys", action="store_true", help="print all keys, their values and what is allowed; no run")
    options.add_json(parser)
    lines = [f"  {name:<9} {c.learners} learners, {c.rounds} merges" for name, c in presets().items()]
    parser.epilog = "\n".join(["presets:", *lines])


def run(arguments: argparse.Namespace) -> int:
    """Train, print the summary, return 0, or 1 if the token ledger does not balance."""
    config = options.config_of(arguments)
    if arguments.keys:
        print(listing(config))
        return 0
    out = options.out_of(arguments, config)
    faults = options.faults_of(arguments, config)
    for note in (*faults.notes, *(idle_in(config, "virtual") if arguments.clock == "virtual" else ())):
        print(f"workbench: {note}", file=sys.stderr)
    code, more = (_real if arguments.clock == "real" else _virtual)(config, out, faults)
    return tell(out, code, more, arguments.json) if more else code


def tell(out: Path, code: int, more: dict[str, Any], as_json: bool) -> int:
    """Print the summary of a run that is over; return its exit code, or 1 if the token ledger does not balance."""
    from workbench.analysis.summary import summary
    from workbench.cli import output
    from workbench.tape import open_tape

    tape = open_tape(out)
    found = {**summary(tape), **more, "tape": str(out)}
    if as_json:
        output.print_json(found)
    else:
        show(tape, found)
    return code or (0 if is_balanced(found) else 1)


def _real(config: RunConfig, out: Path, faults: FaultPlan) -> tuple[int, dict[str, Any]]:
    from workbench.cli.train_real import train_real

    return train_real(config, out, faults)


def _virtual(config: RunConfig, out: Path, faults: FaultPlan) -> tuple[int, dict[str, Any]]:
    from workbench.simulate.training_run import train_virtual

    return virtual_outcome(out, config.rounds, lambda progress: train_virtual(config, out, faults, progress))


def virtual_outcome(
    out: Path, rounds: int, go: Callable[[Callable[[Progress], None]], TrainedRun]
) -> tuple[int, dict[str, Any]]:
    """Let a run in virtual time go to its end with progress beside it; exit code, and what its tape does not say.

    Raises
    ------
    KeyboardInterrupt
        With what to type next, if there is a tape.
    """
    from workbench.cli import output

    try:
        with output.progress("merges") as report:
            trained = go(lambda now: report(now.merges, rounds, remark(now)))
    except KeyboardInterrupt as error:
        if (out / "tape").is_dir():
            raise KeyboardInterrupt(f"interrupted; the tape is closed: workbench inspect {out}") from error
        raise
    return 0, {"digest": f"{trained.digest:016x}", "virtual_s": trained.virtual_s, "wall_s": trained.wall_s}


def is_balanced(summary: dict[str, Any]) -> bool:
    """Return whether the token fates add up to the tokens that were processed."""
    fates = ("merged", "overwritten", "not_merged", "blended", "lost", "rolled_back", "local")
    total = sum(summary[f"tokens_{fate}"] for fate in fates)
    return math.isclose(total, summary["tokens_processed"], rel_tol=1e-9, abs_tol=1e-6)


def remark(now: Progress) -> str:
    """Return what stands beside the bar: virtual time, loss, and why nothing is merged if nothing is."""
    parts = [f"{now.time_s:.1f} s virtual"]
    if now.loss is not None:
        parts.append(f"loss {now.loss:.3f}")
    if now.waits_for:
        parts.append(now.waits_for)
    return ", ".join(parts)


def show(tape: xr.DataTree, found: dict[str, Any]) -> None:
    """Print what came out in the words of ``workbench inspect``, and what to type next."""
    from workbench.analysis.reports import REPORTS
    from workbench.cli import output, words
    from workbench.cli.pages import header, incidents, ledger, overview

    report, screen = REPORTS["overview"](tape), output.console()
    path = found["tape"]
    more = [("wall time", words.seconds(found["wall_s"])), ("weights", f"digest {found['digest']}")]
    parts = [
        *header.show(path, report["run"]),
        output.pairs("", [*overview.vitals(report), *more]),
        ledger.verdict(report["ledger"]),
        *incidents.show(report),
    ]
    for part in parts:
        screen.print(part)
    screen.print(f"\nwhat happened: workbench inspect {path}", soft_wrap=True)
    screen.print(f"bit for bit:   workbench replay {path}", soft_wrap=True)
