"""Tables that figures are drawn from: a faulty run, one with almost nothing, one with a hundred thousand steps."""

from __future__ import annotations

from functools import cache
from typing import Any

from tests.analysis.runs import CONFIG, FAULTS, SECOND, began, ended, joined, merged, rec, simulated, step, with_evals
from workbench.analysis.arrays.tables import Tables
from workbench.analysis.from_records import tables
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind, Record, process_of


@cache
def faulty() -> Tables:
    """A run in virtual time with a kill, a stall, a slow-down, bad numbers and a killed syncer."""
    more = (
        Fault("nan", 3 * SECOND, learner=0, count=2),
        Fault("kill_syncer", 4 * SECOND, for_ns=SECOND // 2),
    )
    return tables(with_evals(simulated((*FAULTS, *more), CONFIG)))


def nothing() -> Tables:
    """A run of which nothing is known but that its rounds began."""
    return tables([began(0.0)])


def one_of_each() -> Tables:
    """One learner, one step, one merge, one evaluation."""
    return tables([
        began(0.0), joined(0, 0.0), step(0, 0.0, 0.5), arrived(0, 1, 0.6), merged(1, 0.7, 1, (0,)), ended(0.7),
    ])  # fmt: skip


def arrived(learner: int, round_: int, time_s: float) -> Record:
    """A FRAGMENT at the syncer."""
    columns: dict[str, Any] = {"peer": process_of(learner), "round": round_, "fragment": 0, "base_version": 0}
    detail = {"codec": "f32", "bytes": 4096, "c_steps": 1, "c_tokens": 10}
    return rec(Kind.FRAGMENT_ARRIVED, time_s, detail=detail, **columns)


def dropped(learner: int, round_: int, time_s: float, reason: str = "late") -> Record:
    """A FRAGMENT that was not merged."""
    return rec(
        Kind.FRAGMENT_DROPPED, time_s, peer=process_of(learner), round=round_, fragment=0, base_version=0, reason=reason
    )


@cache
def long(steps: int = 25_000, learners: int = 4) -> Tables:
    """As many steps of every learner of a tenth of a second each, and a merge for every ten of them."""
    records = [began(0.0), *(joined(m, 0.0) for m in range(learners))]
    for n in range(steps):
        records += [step(m, n * 0.1, (n + 1) * 0.1 - 0.002 * m, n + 1) for m in range(learners)]
        if n % 10 == 9:
            everybody = tuple(range(learners - (n % 40 == 39)))
            records.append(merged(n, (n + 1) * 0.1, n // 10 + 1, everybody))
    return tables([*records, ended(steps * 0.1)])
