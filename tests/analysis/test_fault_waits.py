from __future__ import annotations

import math

import pytest

from tests.analysis.runs import SECOND, began, ended, fault, healed, joined, merged, rec, step
from workbench.analysis.bound import bound_s, gaps
from workbench.analysis.fault_waits import fault_waits
from workbench.analysis.from_records import tables
from workbench.config import RunConfig
from workbench.protocol.records import SYNCER, Kind, Record, process_of

PLAIN = RunConfig(learners=2, quorum=2, period=4, fragments=2, overlap=1, grace="none")


def run(*more: Record) -> list[Record]:
    """Two learners that step once a second, then, from 12 s on, in 3 s; merges at 4, 8, 13 and 16 s."""
    records = [joined(0), joined(1), healed(0), healed(1), began()]
    records += [step(m, n - 1, n, n, g=n - 1) for m in range(2) for n in range(1, 13)]
    records += [step(m, 12, 15, 13, g=12) for m in range(2)]
    for version, at in enumerate((4, 8, 13, 16), 1):
        records += [rec(Kind.ROUND_OPENED, at - 1, round=2 * version, fragment=0), merged(2 * version, at, version)]
    return sorted([*records, *more, ended(20)], key=lambda record: record.time_ns)


def test_the_longest_wait_around_a_fault_stands_beside_the_bound_from_before_it() -> None:
    found = fault_waits(tables(run(fault(1, 10, "stall", 15))), PLAIN)
    assert [(w.kind, w.process, w.start_ns, w.end_ns) for w in found] == [
        ("stall", process_of(1), 10 * SECOND, 15 * SECOND)
    ]
    assert found[0].longest_s == pytest.approx(5.0), "from 8 s to 13 s; the next merge, at 16 s, ends 3 s"
    before = {"period": 4, "fragments": 2, "overlap": 1, "grace_cap_s": 0.0, "pull_limit_s": 0.25}
    assert found[0].bound_s == pytest.approx(bound_s([1.0, 1.0], quorum=2, **before))  # type: ignore[arg-type]


def test_a_fault_after_the_last_merge_and_one_that_lasts_for_ever() -> None:
    found = fault_waits(tables(run(fault(0, 17, "kill", 10**6), fault(1, 2, "cut", 2))), PLAIN)
    assert [w.kind for w in found] == ["cut", "kill"]
    assert found[1].end_ns == 20 * SECOND
    assert [math.isnan(w.longest_s) for w in found] == [True, True]


def test_while_the_syncer_itself_stands_still_nobody_waits_for_it() -> None:
    stopped = rec(Kind.SELF_STOPPED, 12.5, SYNCER, value=3.0)
    found = fault_waits(tables(run(fault(1, 10, "stall", 15), stopped)), PLAIN)
    assert found[0].longest_s == pytest.approx(3.0), "8 to 13 s is 2 s now; 13 to 16 s is the longest"
    waits = gaps(tables(run()), PLAIN), gaps(tables(run(stopped)), PLAIN)
    assert [w.stopped_ns.sum() for w in waits] == [0, 3 * SECOND]
    assert waits[0].start_ns.tolist() == waits[1].start_ns.tolist()
