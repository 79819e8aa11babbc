"""Ask the tape of a run what would have been with something changed.

The answer is a run of its own, whose header names its parent and the event at
which it was left; inspect and replay read it. Arithmetic (merge, weights,
outer, its numbers, fold, inner.rate), of the whole run or from a round on,
keeps the schedule of the tape: one exact answer. Quorum, grace, lead and the
like, and faults removed, moved or added, run the machines on their recorded
inputs up to the first record that differs; from there on virtual time takes
over, with the durations of the tape.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.cli import options
from workbench.config import ConfigError
from workbench.config.load import parse_set


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench what-if``."""
    options.add_run(parser)
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="sets", help="change one key; may be repeated"
    )
    parser.add_argument("--from-round", metavar="T", type=int, help="the change acts from the opening of this round on")
    parser.add_argument(
        "--without",
        metavar="FAULT",
        action="append",
        default=[],
        help="remove a fault: its number, a kind (kill), a kind at a learner (kill:2), or the end of a process that "
        "no fault explains (end:2); may be repeated",
    )
    parser.add_argument(
        "--move",
        metavar="N=SECONDS",
        action="append",
        default=[],
        help="let fault N strike at another time, counted from the start of rounds",
    )
    parser.add_argument("--faults", metavar="FILE", type=Path, help="add the faults of a scenario")
    parser.add_argument("--seeds", metavar="N", type=int, default=1, help="children with draws of their own (1)")
    parser.add_argument(
        "--resimulate",
        action="store_true",
        help="virtual time from the start; with no change a test of the timing model",
    )
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="folder of the answer (default: a new one in runs/)")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Ask, print the answer, return 0; 1 if nothing was changed and yet something came out otherwise."""
    values = dict(parse_set(text) for text in arguments.sets)
    moved = all_moved(arguments.move)

    from workbench.cli import output
    from workbench.cli.opening import opened
    from workbench.cli.pages import what_if as page
    from workbench.replay.counterfactual.asking import what_if
    from workbench.replay.environment import check_training
    from workbench.tape import being_written

    goes_on = being_written(arguments.run)
    tape = opened(arguments.run)
    check_training(tape, str(arguments.run))
    if goes_on:
        merges = tape["merges"].sizes["merge"]
        print(f"workbench: {arguments.run} still goes on: asked of its first {merges:,} merges", file=sys.stderr)
    with output.progress("merges") as report:
        found = what_if(
            tape,
            values,
            seeds=arguments.seeds,
            from_round=arguments.from_round,
            without=arguments.without,
            moved=moved,
            added=added_of(arguments, tape),
            resimulate=arguments.resimulate,
            out=arguments.out,
            path=str(arguments.run),
            progress=lambda done, total: report(done, total, ""),
        )
    if arguments.json:
        output.print_json(found.to_json())
    else:
        screen = output.console()
        for part in page.show(found, str(arguments.run)):
            screen.print(part, soft_wrap=isinstance(part, str))
    return 1 if found.unlike else 0


def all_moved(texts: Sequence[str]) -> dict[int, float]:
    """Times [s] by fault, of all ``N=SECONDS``.

    Raises
    ------
    ConfigError
        When one is something else, or two name the same fault.
    """
    moved: dict[int, float] = {}
    for text in texts:
        number, seconds = moved_of(text)
        if number in moved:
            raise ConfigError(f"--move {text}: fault {number} is moved twice; leave one of the two out")
        moved[number] = seconds
    return moved


def moved_of(text: str) -> tuple[int, float]:
    """Fault and time [s] of one ``N=SECONDS``.

    Raises
    ------
    ConfigError
        When it is something else.
    """
    number, _, seconds = text.partition("=")
    try:
        found = int(number), float(seconds)
        if 0 <= found[1] < math.inf:
            return found
    except ValueError:
        pass
    raise ConfigError(
        f"--move {text}: expected the number of a fault and seconds from the start of rounds, as in --move 1=2.5"
    )


def added_of(arguments: argparse.Namespace, tape: Any) -> Sequence[Any]:
    """Faults of the scenario that the flags name."""
    if arguments.faults is None:
        return ()
    from workbench.config import from_toml
    from workbench.protocol.scenario import load_faults

    return load_faults(arguments.faults, from_toml(tape.attrs["config"])).faults
