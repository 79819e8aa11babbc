"""Virtual time until the end of the run: from a branch on, or from the start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from workbench.algorithms.schedule import offsets
from workbench.protocol.events import StopAsked
from workbench.protocol.faults import Fault, FaultPlan
from workbench.protocol.records import Kind, Record
from workbench.replay.counterfactual.again import come_again, end_again, goes_on
from workbench.replay.counterfactual.durations import KeyedTimes
from workbench.replay.counterfactual.ends import Ended
from workbench.replay.counterfactual.parent import Parent
from workbench.replay.counterfactual.plan import Struck
from workbench.simulate.numbers import Numbers
from workbench.simulate.world import World

Journal = Callable[[list[tuple[int, int, int, bytes]], list[Record]], None]
NO_MERGES = "no merges"
"""Why a run was ended that waits for what does not come."""
SECOND = 10**9


class Stopped(RuntimeError):
    """A counterfactual that cannot go on."""


def plan_of(struck: Iterable[Struck], added: Sequence[Fault], after_ns: int, learners: int) -> FaultPlan:
    """Faults that strike after a time: the tape's own, which keep their time or their round, and others."""
    faults = [s.fault for s in struck if s.time_ns > after_ns and not s.skipped] + [
        f for f in added if f.is_tied or f.at_ns > after_ns
    ]
    kept = [f for f in faults if f.learner < learners]
    return FaultPlan(tuple(sorted(kept, key=lambda f: f.at_ns)))


def from_start(
    parent: Parent,
    numbers: Numbers,
    times: KeyedTimes,
    plan: FaultPlan,
    ends: Sequence[Ended],
    journal: Journal,
    identity: dict[str, Any],
) -> World:
    """A world that begins as the parent did: every process at its time, faults and controls at theirs."""
    config = numbers.config if numbers.config.virtual.bandwidth == 0 else numbers.config.set({"virtual.bandwidth": 0.0})
    late = tuple(replace(f, for_ns=max(1, f.at_ns + f.for_ns)) if f.kind == "late" else f for f in plan.faults)
    world = World(
        config,
        offsets(config.fragments, config.period),
        numbers,
        replace(plan, faults=late),
        journal=journal,
        sizes=numbers.fragmentation.sizes,
        identity=identity,
        durations=times,
    )
    come_again(world, parent, times, -1)
    for end in ends:
        world.at(end.time_ns, end_again, (world, end))
    return world


def go_on(world: World, patience_ns: int, progress: Callable[[int], None] | None = None) -> None:
    """Let a world come to its end; one in which no merge comes for ``patience_ns`` is asked to end.

    Raises
    ------
    Stopped
        Its syncer found a state that must not be, or nothing is left to happen.
    """
    count, merges, merged_at = 0, -1, world.now
    while (not world.finished or goes_on(world)) and not world.failed:
        if not world.heap:
            raise Stopped(f"the counterfactual stands still at {world.now / SECOND:.1f} s: nothing is left to happen")
        world.step()
        state = world.syncer.machine.state
        if state.merges != merges:
            merges, merged_at = state.merges, world.now
        if world.now - merged_at > patience_ns and world.syncer.alive and not (state.ending or goes_on(world)):
            world.give(world.syncer, StopAsked(NO_MERGES))
        count += 1
        if progress is not None and count % 256 == 0:
            progress(merges)
    if world.failed:
        raise Stopped(f"the counterfactual's syncer stopped: {world.failed}")
    world.evaluations.when_due(last=True)


def patience_of(parent: Parent) -> int:
    """Time without a merge after which a counterfactual is given up: long after the parent's longest [ns]."""
    times = [r.time_ns for r in parent.records if r.kind == Kind.MERGED]
    gaps = [b - a for a, b in pairwise(times)]
    return max(10 * max([*gaps, *times[:1]], default=0), 30 * SECOND)
