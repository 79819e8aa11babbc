"""Random schedules for the explorer: a small run, its timing, and what befalls it, drawn from a seed."""

from __future__ import annotations

import random
from typing import Any

from workbench.protocol.faults import Fault
from workbench.simulate.drawn_faults import ROUNDS, draw_fault, draw_more, triggered
from workbench.simulate.durations import SECOND
from workbench.simulate.schedule import Change, Loss, Schedule


def draw(
    seed: int, more: bool = True, recovery: bool = True, guards: bool = True, roster: bool = True, stops: bool = True
) -> Schedule:
    """The schedule of a seed: sizes, rules, speeds, and at least three faults; ``more``: of all kinds there are.

    ``recovery``: states from peers, snapshots and losses of the whole run, too.  ``guards``: other guards than that
    against what is not finite, and what they are for.  ``roster``: learners that are added and removed.  ``stops``: the
    run is stopped in order and resumed, where it is lost at all.
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
    if recovery and stops:
        losses += draw_stops(seed, horizon)
    config |= {"guard_norm": 0.0, "guard_cosine": False, "quarantine_after": 0}
    if guards:
        faults += draw_guards(seed, config, learners, horizon)
    if roster:
        faults += draw_roster(seed, learners, horizon)
    released = SECOND if config["quarantine_after"] else 0
    ordered = tuple(sorted(faults, key=lambda f: f.at_ns))
    return Schedule(seed, config, virtual, ordered, changes, losses, wanted, released)


def draw_guards(seed: int, config: dict[str, Any], learners: int, horizon_s: float) -> list[Fault]:
    """Guards, which go into ``config``, and contributions that they may refuse."""
    rng = random.Random(f"guards {seed}")
    config |= {
        "guard_norm": rng.choice((10.0, 10.0, 3.0, 0.0)),
        "guard_cosine": rng.random() < 0.4,
        "quarantine_after": rng.choice((0, 0, 1, 2, 3)),
    }
    return [
        Fault(
            kind=rng.choice(("scale", "scale", "flip", "flip", "nan")),
            at_ns=int(rng.uniform(0.2, max(horizon_s, 0.5)) * SECOND),
            learner=rng.randrange(learners),
            factor=rng.choice((100.0, 100.0, -50.0)),
            count=rng.choice((1, 2, 5, 8)),
        )
        for _ in range(rng.choice((0, 1, 1, 2)))
    ]


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


def draw_stops(seed: int, horizon_s: float) -> tuple[Loss, ...]:
    """Times at which somebody stops the run, and resumes it after its end."""
    rng = random.Random(f"stops {seed}")
    at = sorted(rng.uniform(0.1, max(horizon_s, 0.5)) for _ in range(rng.choice((0, 0, 0, 1, 1, 2))))
    return tuple(Loss(int(s * SECOND), int(rng.choice((0.01, 0.5)) * SECOND), rng.random() < 0.4, True) for s in at)


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


def draw_roster(seed: int, learners: int, horizon_s: float) -> list[Fault]:
    """Learners that are added and removed, and what befalls those that were added."""
    rng = random.Random(f"roster {seed}")
    added = rng.choice((0, 0, 1, 1, 2))
    kinds = ["add"] * added + ["remove"] * rng.choice((0, 1, 1, 2))
    kinds += [rng.choice(("kill", "stall", "cut", "nan")) for _ in range(added and rng.choice((0, 1)))]
    found = []
    for kind in kinds:
        fault = Fault(
            kind=kind,
            at_ns=int(rng.uniform(0.2, max(horizon_s, 0.5)) * SECOND),
            learner=-1 if kind == "add" else rng.randrange(learners + added),
            for_ns=0 if kind in ("add", "remove") else SECOND // 2,
        )
        found.append(triggered(rng, fault, again=False))
    return found
