"""Random schedules for the explorer: a small run, its timing, and the faults that strike it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import msgspec

from workbench.algorithms.schedule import offsets
from workbench.config import RunConfig, VirtualConfig
from workbench.protocol.events import SnapshotAsked
from workbench.protocol.faults import Fault, FaultPlan
from workbench.protocol.restart import cut_of
from workbench.protocol.syncer_state import RoundState
from workbench.simulate.arithmetic import Ledgered
from workbench.simulate.drawn_faults import ROUNDS, draw_fault, draw_more
from workbench.simulate.durations import SECOND
from workbench.simulate.invariants import Watch
from workbench.simulate.world import World

LOSING = ("cut", "cut_up", "cut_down", "lose_up", "lose_down", "loss")
"""Kinds of fault after which the bound B is not claimed: messages are lost without a closed connection."""


class Change(msgspec.Struct, frozen=True):
    """A live setting changed at a time."""

    at_ns: int
    values: dict[str, Any]


class Loss(msgspec.Struct, frozen=True):
    """Every process is killed; after ``down_ns`` the run is resumed, ``back`` at its newest snapshot or as it was."""

    at_ns: int
    down_ns: int
    back: bool


class Schedule(msgspec.Struct, frozen=True):
    """One run to explore; its JSON is the line that replays it."""

    seed: int
    config: dict[str, Any]
    virtual: dict[str, Any]
    faults: tuple[Fault, ...]
    changes: tuple[Change, ...] = ()
    losses: tuple[Loss, ...] = ()
    wanted_ns: tuple[int, ...] = ()
    """When somebody asks for a snapshot."""

    def run_config(self) -> RunConfig:
        """The configuration of the run."""
        virtual = {**self.virtual, "slow": tuple(self.virtual.get("slow", ()))}
        return RunConfig(seed=self.seed, eval_every=0, virtual=VirtualConfig(**virtual), **self.config)

    def text(self) -> str:
        """One line of JSON."""
        return msgspec.json.encode(self).decode()


def parse(text: str) -> Schedule:
    """A schedule from its line."""
    return msgspec.json.decode(text, type=Schedule)


def draw(seed: int, more: bool = True, recovery: bool = True) -> Schedule:
    """The schedule of a seed: sizes, rules, speeds, and at least three faults; ``more``: of all kinds there are.

    ``recovery``: states from peers, snapshots and losses of the whole run, too.
    """
    rng = random.Random(seed)
    learners = rng.randint(2, 6)
    period = rng.randint(1, 5)
    fragments = rng.randint(max(1, period - 2), period)
    lead = rng.choice((None, None, None, None, 0, 1, 2))
    config: dict[str, Any] = {
        "learners": learners,
        "rounds": ROUNDS,
        "period": period,
        "fragments": fragments,
        "overlap": rng.randint(0, min(3, period - 1)),
        "quorum": rng.choice((1, 1, rng.randint(1, learners), learners)),
        "eligibility": rng.choice(("fresh", "fresh", "paced", "step")),
        "grace": rng.choice(("adaptive", "adaptive", "none", "fixed", "all")),
        "grace_s": 0.05,
        "lead": lead,
        "anchor": rng.choice(("current", "current", "current", "base")),
        "fold": rng.choice(("overwrite", "overwrite", "blend", "delay_corrected")),
        "fold_at": rng.choice(("receipt", "receipt", "due")),
        "start_limit_s": rng.choice((0.3, 2.0, 5.0)),
    }
    if config["grace"] == "all" and config["eligibility"] == "step" and lead is None:
        config["eligibility"] = "fresh"  # waiting for the slowest while the others run on at once grows without end
    virtual = {
        "step_s": 0.1,
        "step_model": rng.choice(("fixed", "jitter", "jitter", "heavy")),
        "jitter": rng.choice((0.03, 0.1, 0.3)),
        "slow": [rng.choice((1.0, 1.0, 1.0, 1.22, 2.0)) for _ in range(learners)],
        "delay_s": rng.choice((0.0, 0.001, 0.02)),
        "delay_jitter": rng.choice((0.0, 0.5)),
        "start_s": rng.choice((0.05, 0.3)),
        "merge_s": rng.choice((0.0005, 0.01)),
    }
    horizon = ROUNDS / fragments * period * 0.1 * 0.9
    faults = [draw_fault(rng, learners, horizon) for _ in range(rng.randint(3, 7))]
    by_step = config["eligibility"] == "step"
    changes = tuple(draw_change(rng, learners, horizon, by_step) for _ in range(rng.choice((0, 0, 0, 1, 2))))
    if more:
        faults += draw_more(seed, learners, horizon)
    config["recovery"] = "fresh"
    losses, wanted = draw_recovery(seed, config, horizon) if recovery else ((), ())
    return Schedule(seed, config, virtual, tuple(sorted(faults, key=lambda f: f.at_ns)), changes, losses, wanted)


def draw_recovery(seed: int, config: dict[str, Any], horizon_s: float) -> tuple[tuple[Loss, ...], tuple[int, ...]]:
    """Snapshots, what joiners begin with, and losses of the whole run; the first two go into ``config``."""
    rng = random.Random(f"recovery {seed}")
    config |= {
        "recovery": rng.choice(("peer", "peer", "peer", "fresh")),
        "state_limit_s": rng.choice((1.0, 4.0)),
        "snapshot_every": rng.choice((0, 0, 4, 10)),
        "snapshot_every_s": rng.choice((0.0, 0.0, 0.5)),
    }
    at = sorted(rng.uniform(0.2, max(horizon_s, 0.5)) for _ in range(rng.choice((0, 0, 1, 2))))
    losses = tuple(Loss(int(s * SECOND), int(rng.choice((0.01, 0.5)) * SECOND), rng.random() < 0.6) for s in at)
    wanted = tuple(int(rng.uniform(0.2, max(horizon_s, 0.5)) * SECOND) for _ in range(rng.choice((0, 0, 1, 2))))
    return losses, wanted


def draw_change(rng: random.Random, learners: int, horizon_s: float, waits_for_steps: bool) -> Change:
    """A change of a live setting; ``waits_for_steps``: not to grace = all, as in `draw`."""
    values: dict[str, Any] = rng.choice(
        (
            {"quorum": rng.randint(1, learners)},
            {"grace": rng.choice(("none", "adaptive", "adaptive" if waits_for_steps else "all"))},
            {"eligibility": rng.choice(("fresh", "paced"))},
            {"merge": rng.choice(("mean", "rda")), "outer_rate": rng.choice((0.3, 0.9))},
            {"weights": rng.choice(("tokens", "uniform"))},
            {"fold": rng.choice(("overwrite", "blend", "delay_corrected"))},
            {"outer": "sgd"},
        )
    )
    return Change(int(rng.uniform(0.2, horizon_s) * SECOND), values)


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


def build(schedule: Schedule) -> tuple[World, Watch]:
    """The world of a schedule and its watch."""
    config = schedule.run_config()
    watch = Watch(config.learners, config.fragments, bound=claims_bound(schedule))
    world = World(
        config,
        offsets(config.fragments, config.period),
        Ledgered(config.fragments),
        FaultPlan(schedule.faults),
        observer=watch,
    )
    for change in schedule.changes:
        world.at(change.at_ns, world.ask, (dict(change.values), "explorer"))
    world.outlasting = (_lose, _go_on, _want)
    for loss in schedule.losses:
        world.at(loss.at_ns, _lose, (world,))
        world.at(loss.at_ns + loss.down_ns, _go_on, (world, loss.back))
    for at_ns in schedule.wanted_ns:
        world.at(at_ns, _want, (world,))
    return world, watch


def _lose(world: World) -> None:
    world.lose_everything()


def _go_on(world: World, back: bool) -> None:
    """Resume, unless that has been done already; as it was where there is nothing to go back to."""
    if world.lost:
        world.resume_run(-1 if back and cut_of(world.records) is not None else None)


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
