"""Records for the tests of the analyses: made by hand, or by a run in virtual time with faults."""

from __future__ import annotations

from functools import cache
from typing import Any

from workbench.algorithms.schedule import offsets
from workbench.config import RunConfig, VirtualConfig
from workbench.protocol.faults import Fault, FaultPlan
from workbench.protocol.records import EVALUATOR, SUPERVISOR, SYNCER, Kind, Record, process_of
from workbench.simulate.arithmetic import Ledgered
from workbench.simulate.world import World

SECOND = 10**9

CONFIG = RunConfig(
    learners=3, rounds=60, period=6, fragments=3, overlap=2, eval_every=20, quorum=1,
    virtual=VirtualConfig(step_s=0.1, start_s=0.2),
)  # fmt: skip
FAULTS = (
    Fault("kill", 2 * SECOND, learner=1, for_ns=SECOND),
    Fault("stall", 5 * SECOND, learner=2, for_ns=SECOND),
    Fault("slow", 7 * SECOND, learner=0, for_ns=SECOND, factor=2.0),
)
EVERY_FAULT = (
    *FAULTS, Fault("nan", 4 * SECOND, learner=0), Fault("cut", 6 * SECOND, learner=1, for_ns=3 * SECOND),
    Fault("kill_syncer", 9 * SECOND, for_ns=SECOND),
)  # fmt: skip
"""Those, bad numbers, a cut link and a killed syncer."""


@cache
def simulated(faults: tuple[Fault, ...] = FAULTS, config: RunConfig = CONFIG) -> list[Record]:
    """Records of a run in virtual time, to its end."""
    world = World(config, offsets(config.fragments, config.period), Ledgered(config.fragments), FaultPlan(faults))
    world.run(until_ns=300 * SECOND)
    assert world.finished, world.failed
    return world.records


def rec(kind: Kind, time_s: float = 0.0, process: int = SYNCER, **columns: Any) -> Record:
    return Record(kind, process, 0, 0, round(time_s * SECOND), **columns)


def step(learner: int, start_s: float, end_s: float, n: int = 1, **detail: float) -> Record:
    times = {"start_ns": round(start_s * SECOND), "end_ns": round(end_s * SECOND)}
    more = {f"{name}_ns": round(detail.get(f"{name}_s", 0.0) * SECOND) for name in ("injected", "waited")}
    columns = {"epoch": int(detail.get("epoch", 0)), "step": n, "global_step": int(detail.get("g", n - 1))}
    return rec(Kind.STEP_ENDED, end_s, process_of(learner), steps=1, tokens=10, detail={**times, **more}, **columns)


def joined(learner: int, time_s: float = 0.0, number: int = 1, reason: str = "process") -> Record:
    return rec(Kind.LEARNER_JOINED, time_s, peer=process_of(learner), value=number, reason=reason)


def healed(learner: int, time_s: float = 0.0) -> Record:
    return rec(Kind.LEARNER_HEALED, time_s, peer=process_of(learner))


def lost(learner: int, time_s: float, reason: str = "exit") -> Record:
    return rec(Kind.LEARNER_LOST, time_s, peer=process_of(learner), reason=reason)


def fault(learner: int, start_s: float, kind: str, until_s: float | None = None, **detail: Any) -> Record:
    until = {} if until_s is None else {"until_ns": round(until_s * SECOND)}
    return rec(
        Kind.FAULT_INJECTED, start_s, SUPERVISOR, peer=process_of(learner), reason=kind, detail={**until, **detail}
    )


def evaluated(time_s: float, merges: int, loss: float, seq: int = 0) -> Record:
    detail = {"versions": [merges // 3] * 3, "seconds": 0.5}
    return Record(
        Kind.EVALUATED,
        EVALUATOR,
        0,
        seq,
        round(time_s * SECOND),
        steps=merges,
        tokens=100 * merges,
        value=loss,
        detail=detail,
    )


def with_evals(records: list[Record]) -> list[Record]:
    """Two evaluations, before the first and after the last merge."""
    return [evaluated(0.1, 0, 5.5, 1), *records[:-1], evaluated(9.0, 60, 2.5, 2), records[-1]]


def began(time_s: float = 0.0) -> Record:
    return rec(Kind.ROUNDS_BEGAN, time_s)


def ended(time_s: float) -> Record:
    return rec(Kind.RUN_ENDED, time_s, reason="rounds")


def merged(round_: int, time_s: float, version: int, learners: tuple[int, ...] = (), fragment: int = 0) -> Record:
    detail = {"learners": list(learners), "steps_captured": [0] * len(learners), "c_tokens": [0] * len(learners)}
    return rec(
        Kind.MERGED, time_s, round=round_, fragment=fragment, version=version, base_version=version - 1, detail=detail
    )


def ledger_vector() -> list[Record]:
    """The vector of DESIGN section 3: two equal fragments, six steps of 100 tokens; a merge of nobody at its end."""
    one, of = process_of(0), {"steps": 3, "tokens": 300, "step": 3, "base_version": 0}

    def stepped(n: int) -> Record:
        return rec(Kind.STEP_ENDED, n, one, step=n, steps=1, tokens=100)

    def folded(fragment: int, n: int, tokens: int) -> Record:
        return rec(
            Kind.UPDATE_FOLDED, n, one, fragment=fragment, version=1, base_version=0, step=n, tokens=tokens,
            reason="overwrite",
        )  # fmt: skip

    detail = {"learners": [0], "steps_captured": [3], "c_steps": [3], "c_tokens": [300]}
    return [
        rec(Kind.LEARNER_JOINED, peer=one, value=1, reason="process", version=1), *map(stepped, (1, 2, 3)),
        rec(Kind.FRAGMENT_CAPTURED, 3, one, fragment=0, round=1, **of),
        rec(Kind.FRAGMENT_CAPTURED, 3, one, fragment=1, round=2, **of),
        rec(Kind.FRAGMENT_DROPPED, 3, peer=one, fragment=1, round=2, reason="late", **of),
        rec(Kind.MERGED, 3, fragment=0, round=1, version=1, base_version=0, tokens=300, detail=detail),
        stepped(4), folded(0, 4, 400), stepped(5), folded(1, 5, 500), stepped(6),
        rec(Kind.MERGED, 6, fragment=0, round=3, version=2, base_version=1, detail={"learners": []}),
    ]  # fmt: skip
