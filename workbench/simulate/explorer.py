"""The explorer: many random schedules under all invariants, and the story of one that fails.

A failing schedule is shrunk, and the report holds one command that runs the small one again.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

from workbench.protocol.faults import FAULT_KINDS
from workbench.protocol.records import Kind, Record, label_of
from workbench.protocol.round_state import RoundState
from workbench.simulate import schedules
from workbench.simulate.durations import SECOND
from workbench.simulate.schedules import LIMIT_S, Outcome, Schedule

CHUNK = 16
STORY_RECORDS = 60


class Failure(NamedTuple):
    """A schedule that broke a rule.

    Attributes
    ----------
    seed : int
    message : str
        Invariant and values.
    command : str
        Runs the shrunk schedule again and prints its story.
    """

    seed: int
    message: str
    command: str


class ExploreReport(NamedTuple):
    """What an exploration found.

    Attributes
    ----------
    schedules, events, merges : int
        Counts over all schedules.
    rounds_min : int
        Fewest merges of a schedule.
    faults_min : int
        Fewest faults that struck in a schedule.
    failures : list of Failure
        Empty if every invariant held at every event.
    coverage : dict of fault kind to (round state to count)
        How often a fault struck while some round was in a state.
    gap : float
        Longest gap between merges as a share of the bound B.
    """

    schedules: int
    events: int
    merges: int
    rounds_min: int
    faults_min: int
    failures: list[Failure]
    coverage: dict[str, dict[str, int]]
    gap: float


def run_seed(seed: int) -> Outcome:
    """Run the schedule of one seed."""
    return schedules.run(schedules.draw(seed))


def _outcomes(seeds: range, processes: int) -> Iterator[Outcome]:
    if processes <= 1:
        yield from map(run_seed, seeds)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("forkserver")) as pool:
        yield from pool.map(run_seed, seeds, chunksize=CHUNK)


def explore(
    seeds: int, first_seed: int = 0, processes: int = 1, progress: Callable[[int, int], None] | None = None
) -> ExploreReport:
    """Run the schedules of seeds ``first_seed`` to ``first_seed + seeds - 1``.

    Parameters
    ----------
    seeds, first_seed : int
        How many, from which.
    processes : int
        Processes that share the work.
    progress : callable, optional
        Called with (done, all).
    """
    coverage = {kind: {state.name: 0 for state in RoundState} for kind in FAULT_KINDS}
    failures: list[Failure] = []
    events = merges = count = 0
    rounds_min = faults_min = 2**31
    gap = 0.0
    for outcome in _outcomes(range(first_seed, first_seed + seeds), processes):
        count += 1
        events += outcome.events
        merges += outcome.merges
        rounds_min = min(rounds_min, outcome.merges)
        faults_min = min(faults_min, len(outcome.struck))
        gap = max(gap, outcome.gap)
        for kind, states in outcome.struck:
            for state in set(states):
                coverage[kind][RoundState(state).name] += 1
        if outcome.failure:
            small = schedules.shrink(schedules.draw(outcome.seed))
            failures.append(Failure(outcome.seed, outcome.failure, command_of(small)))
        if progress is not None:
            progress(count, seeds)
    return ExploreReport(count, events, merges, rounds_min, faults_min, failures, coverage, gap)


def command_of(schedule: Schedule) -> str:
    """The line that runs a schedule again."""
    return f"workbench explore --schedule {shlex.quote(schedule.text())}"


class Story(NamedTuple):
    """One schedule told.

    Attributes
    ----------
    text : str
        Sizes, faults, what the journal holds, and how it ended.
    failure : str
        The rule that broke, empty if none.
    """

    text: str
    failure: str


def tell(schedule: Schedule) -> Story:
    """Run one schedule and tell what happened: membership, faults, and the last records before the end."""
    world, watch = schedules.build(schedule)
    failure = ""
    try:
        world.run(until_ns=schedules.last_ns(schedule) + int(LIMIT_S * SECOND))
        if world.failed:
            failure = f"the syncer stopped: {world.failed}"
        elif not world.finished:
            failure = schedules.stuck(world)
    except Exception as error:  # as in `schedules.run`
        failure = f"{type(error).__name__}: {error}"
    lines = [schedule.text(), ""]
    tail = len(world.records) - STORY_RECORDS
    for index, record in enumerate(world.records):
        if index >= tail or 20 <= record.kind < 40 or record.kind >= 60:
            lines.append(line_of(record))
    lines += ["", failure or f"all invariants held: {watch.liveness.merges} merges in {world.now / SECOND:.2f} s"]
    return Story("\n".join(lines), failure)


def run_one(seed: int) -> Story:
    """The story of a seed's schedule."""
    return tell(schedules.draw(seed))


def line_of(record: Record) -> str:
    """One record on one line: time, process, kind and the columns that it fills."""
    columns = [
        f"{name}={value}"
        for name, value in (
            ("peer", label_of(record.peer) if record.peer >= 0 else -1),
            ("t", record.round),
            ("p", record.fragment),
            ("v", record.version),
            ("base", record.base_version),
            ("n", record.step),
        )
        if value != -1
    ]
    words = [record.reason] if record.reason else []
    return (
        f"{record.time_ns / SECOND:9.4f} s  {label_of(record.process):<10} {Kind(record.kind).name.lower():<28} "
        + " ".join([*columns, *words])
    )
