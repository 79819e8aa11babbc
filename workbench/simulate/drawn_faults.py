"""Faults for the schedules of the explorer, drawn at random."""

from __future__ import annotations

import random
from dataclasses import replace

from workbench.protocol.faults import Fault
from workbench.protocol.round_state import RoundState
from workbench.simulate.durations import SECOND

ROUNDS = 40
"""Merges of a schedule."""

_FAULT_KINDS = (
    "kill", "kill", "stall", "stall", "slow", "cut", "cut_up", "cut_down", "lose_up", "lose_down", "delay", "nan",
    "kill_syncer", "kill_syncer", "stall_syncer",
)  # fmt: skip


def draw_fault(rng: random.Random, learners: int, horizon_s: float) -> Fault:
    """A fault that ends: kinds by weight, times over the run, some tied to a state of a round."""
    kind = rng.choice(_FAULT_KINDS)
    length = rng.choice((0.02, 0.3, 1.0, 3.0))
    if kind == "kill":
        length = rng.choice((0.05, 0.5, 2.5))
    fault = Fault(
        kind=kind,
        at_ns=int(rng.uniform(0.2, max(horizon_s, 0.5)) * SECOND),
        learner=-1 if kind.endswith("syncer") else rng.randrange(learners),
        for_ns=int(length * SECOND),
        factor=rng.choice((2.0, 5.0)),
        count=rng.choice((1, 1, 3)),
        round_state=int(rng.choice((-1, -1, *RoundState))),
    )
    if kind == "delay":
        fault = replace(fault, delay_ns=int((fault.factor - 1.0) * 0.02 * SECOND), jitter_ns=SECOND // 100)
    return fault


_MORE_KINDS = (
    "exit", "exit", "late", "loss", "bandwidth", "slow", "inf", "scale", "flip", "random", "corrupt", "shape",
)  # fmt: skip


def draw_more(seed: int, learners: int, horizon_s: float) -> list[Fault]:
    """Faults of the kinds that `draw_fault` does not know, with other triggers and repetitions."""
    rng = random.Random(f"more {seed}")
    found: dict[str, Fault] = {}
    for _ in range(rng.randint(1, 3)):
        kind, learner = rng.choice(_MORE_KINDS), rng.randrange(learners)
        at_ns = int(rng.uniform(0.2, max(horizon_s, 0.5)) * SECOND)
        fault = Fault(
            kind=kind,
            at_ns=0 if kind == "late" else at_ns,
            learner=learner,
            for_ns=int(rng.choice((0.05, 0.5, 2.0)) * SECOND),
            factor=rng.choice((1.5, 4.0)),
            count=rng.choice((1, 2, 5)),
            share=rng.choice((0.1, 0.5)),
            bytes_per_s=rng.choice((2e4, 2e5)),
            persistent=rng.random() < 0.3 and kind in ("scale", "flip", "random"),
        )
        found[kind] = fault if kind == "late" else triggered(rng, fault)
    return list(found.values())


def triggered(rng: random.Random, fault: Fault, again: bool = True) -> Fault:
    """The fault at its time, or at a state of a round, a round or a merge; now and then several times."""
    trigger = rng.choice(("time", "state", "state", "round", "merge"))
    if trigger == "state":
        fault = replace(fault, round_state=int(rng.choice(list(RoundState))))
    elif trigger == "round":
        fault = replace(fault, at_round=rng.randrange(2 * ROUNDS // 3))
    elif trigger == "merge":
        fault = replace(fault, at_merge=rng.randrange(2 * ROUNDS // 3))
    if again and rng.random() < 0.3:
        fault = replace(fault, every_ns=int(rng.choice((0.3, 1.5)) * SECOND), times=rng.randint(2, 3))
    return fault
