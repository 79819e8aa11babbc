"""Schedules of the explorer: how one is run under all invariants, and made smaller when it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from workbench.algorithms.schedule import offsets
from workbench.protocol.events import QuarantineAsked, SnapshotAsked
from workbench.protocol.faults import FaultPlan
from workbench.protocol.records import Record
from workbench.protocol.restart import cut_of
from workbench.protocol.round_state import RoundState
from workbench.simulate.arithmetic import Ledgered
from workbench.simulate.drawing import draw
from workbench.simulate.drawn_faults import ROUNDS
from workbench.simulate.durations import SECOND
from workbench.simulate.invariants import Watch
from workbench.simulate.outages import lose_everything, resume_run
from workbench.simulate.schedule import Change, Loss, Schedule, parse
from workbench.simulate.stops import Stops
from workbench.simulate.world import World

__all__ = ["ROUNDS", "Change", "Loss", "Outcome", "Schedule", "build", "draw", "parse", "run", "shrink", "stuck"]

LOSING = ("cut", "cut_up", "cut_down", "lose_up", "lose_down", "loss")
"""Kinds of fault after which the bound B is not claimed: messages are lost without a closed connection."""


class Outcome(msgspec.Struct):
    """What became of a schedule."""

    seed: int
    failure: str
    events: int
    merges: int
    rounds: int
    records: int
    time_s: float
    struck: list[tuple[str, tuple[int, ...]]]
    gap: float


LIMIT_S = 90.0
"""Virtual seconds that a schedule gets after its last fault before it counts as stuck."""


def build(
    schedule: Schedule, journal: Callable[[list[tuple[int, int, int, bytes]], list[Record]], None] | None = None
) -> tuple[World, Watch]:
    """The world of a schedule and its watch; ``journal`` as in `World`."""
    config = schedule.run_config()
    watch = Watch(config.learners, config.fragments, bound=claims_bound(schedule))
    world = World(
        config,
        offsets(config.fragments, config.period),
        Ledgered(config.fragments),
        FaultPlan(schedule.faults),
        journal=journal,
        observer=watch,
    )
    for change in schedule.changes:
        world.at(change.at_ns, world.ask, (dict(change.values), "explorer"))
    stops = Stops(world, schedule.losses, _go_on)
    world.outlasting = (_lose, _go_on, _want, release_again, stops.ask)
    if schedule.release_every_ns:
        world.at(schedule.release_every_ns, release_again, (world, schedule.release_every_ns))
    for loss in schedule.losses:
        if not loss.ordered:
            world.at(loss.at_ns, _lose, (world,))
            world.at(loss.at_ns + loss.down_ns, _go_on, (world, loss.back))
    for at_ns in schedule.wanted_ns:
        world.at(at_ns, _want, (world,))
    return world, watch


def _lose(world: World) -> None:
    lose_everything(world)


def _go_on(world: World, back: bool) -> None:
    """Resume, unless that has been done already; as it was where there is nothing to go back to."""
    if world.lost:
        resume_run(world, -1 if back and cut_of(world.records) is not None else None)


def release_again(world: World, every_ns: int) -> None:
    """Let in who is quarantined, again and again."""
    world.at(world.now + every_ns, release_again, (world, every_ns))
    for member in list(world.syncer.machine.state.members.values()):
        if member.quarantined:
            world.give(world.syncer, QuarantineAsked(member.learner, False, "explorer"))


def _want(world: World) -> None:
    world.give(world.syncer, SnapshotAsked("explorer"))


def claims_bound(schedule: Schedule) -> bool:
    """Whether the bound B holds for a schedule: no lost messages, a lead or rules that leave learners out."""
    return not any(f.kind in LOSING for f in schedule.faults) and schedule.config["lead"] is None


def run(schedule: Schedule) -> Outcome:
    """Run a schedule to its end under all invariants."""
    world, watch = build(schedule)
    failure = ""
    try:
        last = last_ns(schedule)
        world.run(until_ns=last + int(LIMIT_S * SECOND))
        if world.failed:
            failure = f"the syncer stopped: {world.failed}"
        elif not world.finished:
            failure = stuck(world)
    except Exception as error:  # a machine that raises has failed like one that breaks a rule
        failure = f"{type(error).__name__}: {error}"
    return Outcome(
        schedule.seed,
        failure,
        world.events,
        watch.liveness.merges,
        world.syncer.machine.state.opened_t,
        len(world.records),
        world.now / SECOND,
        [(fault.kind, states) for fault, states, effect in world.striker.struck if effect],
        watch.liveness.longest,
    )


def last_ns(schedule: Schedule) -> int:
    """When the last fault and the last loss are over [ns]."""
    faults = max((f.at_ns + f.for_ns for f in schedule.faults), default=0)
    return max([faults, *(loss.at_ns + loss.down_ns for loss in schedule.losses)])


def stuck(world: World) -> str:
    """Says where a run stands that does not come to its end."""
    state = world.syncer.machine.state
    rounds = [(r.t, r.p, RoundState(r.state).name, sorted(r.here), sorted(r.pulls)) for r in state.rounds.values()]
    members = [
        (m.learner, "connected" if m.connected else "lost", f"g={m.g}", f"base={m.base}", f"c={m.c_steps}")
        for m in state.members.values()
    ]
    return f"stuck at {world.now / SECOND:.1f} s after {state.merges} merges: rounds {rounds}, members {members}"


def shrink(schedule: Schedule, tries: int = 200) -> Schedule:
    """A smaller schedule that fails alike: fewer faults and changes, plainer rules."""

    def kind_of(failure: str) -> str:
        return failure.split(":")[1] if failure.startswith("InvariantBroken") else failure.split(" ")[0]

    wanted = kind_of(run(schedule).failure)

    def fails(candidate: Schedule) -> bool:
        nonlocal tries
        tries -= 1
        try:
            outcome = run(candidate)
        except ValueError:
            return False
        return bool(outcome.failure) and kind_of(outcome.failure) == wanted

    moving = True
    while moving and tries > 0:
        moving = False
        for candidate in _smaller(schedule):
            if tries > 0 and fails(candidate):
                schedule, moving = candidate, True
                break
    return schedule


def _smaller(schedule: Schedule) -> list[Schedule]:
    plainer = {
        "eligibility": "fresh", "grace": "adaptive", "anchor": "current", "fold": "overwrite",
        "fold_at": "receipt", "lead": None, "recovery": "fresh", "snapshot_every": 0, "snapshot_every_s": 0.0,
        "guard_norm": 0.0, "guard_cosine": False, "quarantine_after": 0,
    }  # fmt: skip
    out = [
        msgspec.structs.replace(schedule, faults=schedule.faults[:i] + schedule.faults[i + 1 :])
        for i in range(len(schedule.faults))
    ]
    out += [
        msgspec.structs.replace(schedule, changes=schedule.changes[:i] + schedule.changes[i + 1 :])
        for i in range(len(schedule.changes))
    ]
    out += [
        msgspec.structs.replace(schedule, losses=schedule.losses[:i] + schedule.losses[i + 1 :])
        for i in range(len(schedule.losses))
    ]
    out += [
        msgspec.structs.replace(schedule, wanted_ns=schedule.wanted_ns[:i] + schedule.wanted_ns[i + 1 :])
        for i in range(len(schedule.wanted_ns))
    ]
    for key, value in plainer.items():
        if schedule.config.get(key, value) != value:
            out.append(msgspec.structs.replace(schedule, config={**schedule.config, key: value}))
    if schedule.virtual["step_model"] != "fixed":
        out.append(msgspec.structs.replace(schedule, virtual={**schedule.virtual, "step_model": "fixed"}))
    out += [
        msgspec.structs.replace(
            schedule, faults=(*schedule.faults[:i], replace(f, round_state=-1), *schedule.faults[i + 1 :])
        )
        for i, f in enumerate(schedule.faults)
        if f.round_state >= 0
    ]
    return out
