"""Run random fault schedules in virtual time; check the invariants at each event.

`--seeds N --first S` runs the seeds S to S + N - 1 and names those that break a
rule, each with a command that runs a shrunk schedule again; `--seed S` runs one
and tells its story in the order of the journal.
Exit code 1: a rule was broken.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workbench.cli import options
from workbench.cli.checks import visible_cores
from workbench.config import ConfigError

if TYPE_CHECKING:
    from workbench.simulate.explorer import ExploreReport, Story
    from workbench.simulate.schedules import Schedule


ORDER = (
    "\nin the order of the journal: a learner's record stands where the syncer took it, so times of different "
    "processes may go back"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench explore``."""
    parser.add_argument("--seeds", metavar="N", type=int, default=100, help="schedules to run (default 100)")
    parser.add_argument("--first", metavar="S", type=int, default=0, help="first seed (default 0)")
    parser.add_argument("--seed", metavar="S", type=int, help="run this one alone and print its story")
    parser.add_argument(
        "--schedule", metavar="JSON", help="run this schedule, as a failure prints it, and tell its story"
    )
    parser.add_argument("--processes", metavar="N", type=int, help="processes (default: the cores there are)")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Explore, print what was found, return 1 if an invariant broke."""
    for flag, least in (("seeds", 1), ("first", 0), ("seed", 0), ("processes", 1)):
        value = getattr(arguments, flag)
        if value is not None and value < least:
            raise ConfigError(f"--{flag} {value} is not possible; allowed: whole numbers from {least}")

    from workbench.cli import output
    from workbench.simulate import explorer

    if arguments.schedule is not None:
        return tell(explorer.tell(parsed(arguments.schedule)), arguments.json)
    if arguments.seed is not None:
        return tell(explorer.run_one(arguments.seed), arguments.json)
    processes = arguments.processes or visible_cores()
    with output.progress("schedules") as report:
        result = explorer.explore(
            seeds=arguments.seeds,
            first_seed=arguments.first,
            processes=processes,
            progress=lambda done, total: report(done, total, ""),
        )
    if arguments.json:
        output.print_json(as_json(result))
    else:
        show(result)
    return 1 if result.failures else 0


def parsed(text: str) -> Schedule:
    """Return the schedule of a line that a failure printed."""
    import msgspec

    from workbench.simulate import schedules

    try:
        return schedules.parse(text)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"--schedule is not one that explore prints: {error}") from error


def tell(story: Story, in_json: bool) -> int:
    """Print the story of one schedule; return 1 if it ends with a broken rule."""
    from workbench.cli import output

    if in_json:
        output.print_json({"failure": story.failure, "story": story.text})
    else:
        print(story.text)
        print(ORDER)
    return 1 if story.failure else 0


def as_json(result: ExploreReport) -> dict[str, object]:
    """Return the report as plain data."""
    failures = [{"seed": f.seed, "message": f.message, "command": f.command} for f in result.failures]
    return {
        "schedules": result.schedules,
        "events": result.events,
        "merges": result.merges,
        "gap_over_bound_max": result.gap,
        "coverage": result.coverage,
        "failures": failures,
    }


def show(result: ExploreReport) -> None:
    """Print the counts, and each failure with the command that runs it again."""
    from workbench.cli import output

    rows = [("schedules", result.schedules), ("events", result.events), ("merges", result.merges)]
    output.console().print(output.pairs("explore", [*rows, ("failures", len(result.failures))]))
    for failure in result.failures:
        print(f"seed {failure.seed}: {failure.message}\n  again: {failure.command}")
