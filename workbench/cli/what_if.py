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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli import options
from workbench.config import ConfigError
from workbench.config.load import parse_set

if TYPE_CHECKING:
    from workbench.replay.counterfactual.asking import WhatIf

ROWS = {
    "val_loss_last": "validation loss",
    "tokens_merged": "tokens merged",
    "participation": "participation",
    "goodput": "goodput",
    "merges": "merges",
    "rounds": "rounds",
    "time_s": "time of the run [s]",
}
"""Numbers that are compared, in words."""


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
        help="remove a fault: its number, a kind (kill), a kind at a learner (kill:2); may be repeated",
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
    from workbench.replay.counterfactual.asking import what_if

    tape = opened(arguments.run)
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
        for part in page(found, str(arguments.run)):
            output.console().print(part, soft_wrap=True)
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


def page(found: WhatIf, run: str) -> list[Any]:
    """What came out, as parts of a screen."""
    from workbench.cli import output

    columns = ["", "parent", "what if"] + (["least", "most"] if found.seeds > 1 else [])
    rows = [[words, found.parent[name], *_cells(found, name)] for name, words in ROWS.items()]
    parts: list[Any] = [output.pairs(f"what if: {run}", facts(found)), output.table("", columns, rows)]
    if found.drawn:
        parts.append(f"durations drawn: {drawn(found)}")
    if found.learners_per_core is not None and found.kind == "schedule":
        parts.append(
            f"learners per core: {found.learners_per_core:g}; on fewer cores than learners the speed of one depends "
            "on the others, which durations of a tape do not show"
        )
    parts.append(f"\nwhat happened: workbench inspect {found.path}")
    parts.append(f"bit for bit:   workbench replay {found.path}")
    return parts


def facts(found: WhatIf) -> list[tuple[str, Any]]:
    """Class, change and branch."""
    changes = ", ".join(f"{key} = {value}" for key, value in found.changes.items())
    gone, new = "; ".join(found.without), "; ".join(found.added)
    parts = (changes, gone and f"without {gone}", new and f"with {new}")
    rows: list[tuple[str, Any]] = [
        ("class", FROM_ROUND if found.kind == "arithmetic" and found.branch_event is not None else CLASSES[found.kind]),
        ("changed", "; ".join(part for part in parts if part) or "nothing"),
        *compared(found),
    ]
    if found.branch_event is not None:
        rows.append(("branch", found.branch or f"event {found.branch_event}"))
        rows.append(("events shared", found.shared_events))
    if found.asked != found.kind:
        rows.append(("turned", "a decision that depends on values changed the schedule at the branch"))
    if found.kind == "schedule" and found.branch_event is None:
        rows.append(("branch", "none: no decision comes out otherwise"))
    if found.seeds > 1:
        rows.append(("seeds", found.seeds))
    elif found.seeds_asked > 1:
        rows.append(("seeds", f"1; nothing is drawn in this answer, so that {found.seeds_asked} seeds give the same"))
    return rows


def compared(found: WhatIf) -> Iterator[tuple[str, Any]]:
    """What came of a question that changes nothing, against the parent."""
    if found.unlike is not None:
        every = f"all {found.shared_events:,} events came out again, bit for bit"
        yield "the parent", f"{found.unlike:,} events came out otherwise" if found.unlike else every
    if found.calibration is not None:
        yield "timing model", found.calibration.text()
        parent, *children = found.calibration.merges
        if any(merges != parent for merges in children):
            yield "merges", f"{', '.join(map(str, children))} against {parent}"


CLASSES = {
    "arithmetic": "arithmetic: the schedule of the tape, everything computed anew; exact",
    "schedule": "schedule: virtual time from the branch on, with the durations of the tape",
}
FROM_ROUND = "arithmetic: the schedule of the tape, everything computed anew from the branch on; exact"


def drawn(found: WhatIf) -> str:
    """How many durations of which kind the tape does not have."""
    return ", ".join(f"{DURATIONS[kind]} {n:,} of {found.used[kind]:,}" for kind, n in sorted(found.drawn.items()))


DURATIONS = {
    "step": "steps",
    "meta": "METADATA",
    "up": "contributions",
    "down": "PULLs",
    "update": "UPDATEs",
    "handed": "UPDATEs handed over",
    "merge": "merges",
    "commit": "commits",
    "start": "start-ups",
    "adopt": "states adopted",
    "welcome": "WELCOMEs",
    "copy": "states copied",
    "state": "states to the syncer",
    "passed": "states to joiners",
    "taken": "states of others adopted",
    "write": "snapshots written",
}
"""Kinds of duration in words."""


def _cells(found: WhatIf, name: str) -> list[Any]:
    spread = found.interval[name]
    if spread is None:
        return [None] * (3 if found.seeds > 1 else 1)
    return list(spread) if found.seeds > 1 else [spread[0]]
