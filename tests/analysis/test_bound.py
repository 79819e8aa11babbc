from __future__ import annotations

import math

import numpy as np
import pytest

from tests.analysis.runs import (
    CONFIG,
    FAULTS,
    SECOND,
    began,
    ended,
    fault,
    healed,
    joined,
    merged,
    rec,
    simulated,
    step,
)
from workbench.analysis.bound import bound_s, gaps, grace_cap_s
from workbench.analysis.from_records import tables
from workbench.config import RunConfig
from workbench.protocol.faults import Fault
from workbench.protocol.records import SYNCER, Kind, Record, process_of

PLAIN = RunConfig(learners=2, quorum=2, period=4, fragments=2, overlap=1, grace="none")


def test_bound_by_hand() -> None:
    terms = {"quorum": 2, "period": 24, "fragments": 7, "overlap": 2, "grace_cap_s": 0.3, "pull_limit_s": 0.25}
    assert bound_s([1.0, 0.5, 7.0], **terms) == pytest.approx((4 + 2 + 2) * 1.0 + 0.3 + 0.25 + 0.5)  # type: ignore[arg-type]
    assert bound_s([1.0], **terms) == math.inf  # type: ignore[arg-type]
    assert grace_cap_s(RunConfig(grace="adaptive", grace_cap_steps=1.5), 0.2) == pytest.approx(0.3)
    assert grace_cap_s(RunConfig(grace="all"), 0.2) == math.inf


def opened(round_: int, time_s: float) -> Record:
    return rec(Kind.ROUND_OPENED, time_s, round=round_, fragment=0)


def committed(round_: int, time_s: float) -> Record:
    return rec(Kind.MERGE_COMMITTED, time_s, round=round_, fragment=0, version=1)


def start(*more: Record) -> list[Record]:
    """Two healed learners that step once a second until 20 s; round 4 is open and merged at 15 s."""
    records = [joined(0), joined(1), healed(0), healed(1), began(), opened(4, 0), *more]
    records += [step(m, n - 1, n, n, g=n - 1) for m in range(2) for n in range(1, 21)]
    records += [merged(4, 15, 1), committed(4, 15), opened(6, 15), ended(20)]
    return sorted(records, key=lambda record: record.time_ns)


def test_a_gap_begins_when_enough_learners_have_reached_the_round() -> None:
    found = gaps(tables(start()), PLAIN)
    assert found.start_ns.tolist() == [3 * SECOND, 15 * SECOND] and found.end_ns.tolist() == [15 * SECOND, 20 * SECOND]
    assert found.bound_s.tolist() == pytest.approx([(2 + 1 + 2) * 1.0 + 0.25 + 0.5] * 2)
    assert found.excess_s.tolist() == pytest.approx([12 - 5.75, 0])
    assert found.merge_availability == pytest.approx(1 - 6.25 / 20)


def test_it_is_interrupted_while_too_few_are_connected_and_there_is_no_bound_for_all() -> None:
    gone = rec(Kind.LEARNER_LOST, 5, peer=process_of(1), reason="heartbeat")
    found = gaps(tables(start(gone, joined(1, 8, reason="rejoin"))), PLAIN)
    assert found.start_ns.tolist() == [3 * SECOND, 8 * SECOND, 15 * SECOND]
    assert found.end_ns.tolist()[:2] == [5 * SECOND, 15 * SECOND]
    assert gaps(tables(start()), PLAIN.set(grace="all")).merge_availability == 1.0


def test_a_quarantined_learner_and_a_changed_quorum_count() -> None:
    out = rec(
        Kind.SETTING_CHANGED, 5, SYNCER, peer=process_of(1), detail={"values": {"quarantined": True}, "who": "test"}
    )
    assert gaps(tables(start(out)), PLAIN).end_ns.tolist() == [5 * SECOND]
    one = rec(Kind.SETTING_CHANGED, 7, SYNCER, setting=1, detail={"values": {"quorum": 1}, "who": "test"})
    assert gaps(tables(start(out, one)), PLAIN).start_ns.tolist() == [3 * SECOND, 7 * SECOND, 15 * SECOND]


def test_from_a_fault_on_the_steps_before_it_count() -> None:
    slow = [step(m, t, t + 4, n, g=n - 1) for m in range(2) for n, t in ((4, 3), (5, 7), (6, 11))]
    records = [joined(0), joined(1), healed(0), healed(1), began(), opened(6, 0)]
    records += [step(m, n - 1, n, n, g=n - 1) for m in range(2) for n in range(1, 4)] + slow
    records = sorted([*records, ended(30)], key=lambda record: record.time_ns)
    assert gaps(tables(records), PLAIN).bound_s.tolist() == pytest.approx([5 * 4 + 0.75])
    records.insert(0, fault(0, 3.5, "slow", 29))
    found = gaps(tables(records), PLAIN)
    assert found.start_ns.tolist() == [11 * SECOND] and found.bound_s.tolist() == pytest.approx([5.75])


def test_a_run_in_virtual_time_keeps_the_bound_until_its_syncer_is_dead() -> None:
    assert gaps(tables(simulated()), CONFIG).merge_availability == 1.0
    found = gaps(tables(simulated((*FAULTS, Fault("kill_syncer", 4 * SECOND, for_ns=8 * SECOND)))), CONFIG)
    excess = found.excess_s[found.excess_s > 0]
    assert len(excess) == 1 and 5 < excess[0] < 8
    assert found.merge_availability == pytest.approx(1 - excess[0] / (found.span_ns * 1e-9))


def test_nothing_to_wait_for() -> None:
    assert np.isnan(gaps(tables([]), PLAIN).merge_availability)
