from __future__ import annotations

import numpy as np

from tests.analysis.runs import CONFIG, began, ended, fault, healed, joined, lost, merged, rec, simulated
from workbench.analysis.arrays.participation import participation
from workbench.analysis.from_records import tables
from workbench.protocol.records import Kind, Record, learner_of, process_of


def opened(round_: int, time_s: float) -> Record:
    return rec(Kind.ROUND_OPENED, time_s, round=round_, fragment=0)


def test_expected_is_healed_connected_and_without_a_fault_during_the_round() -> None:
    found = participation(tables([
        joined(0), joined(1), joined(2), healed(0), healed(1), began(),
        opened(1, 1), healed(2, 1.5), merged(1, 2, 1, (0, 1)),  # L2 healed too late
        opened(2, 3), fault(1, 3.5, "slow", 6), merged(2, 4, 2, (0,)),  # L1 under a fault
        opened(3, 5), merged(3, 7, 3, (0, 1)),  # L1 under a fault in its first second, and yet included
        opened(4, 8), lost(0, 8.5, "heartbeat"), joined(0, 8.6, reason="rejoin"), merged(4, 9, 4, (1,)),
        opened(5, 10), lost(2, 10.5), merged(5, 11, 5, (1,)), ended(12),
    ]))  # fmt: skip
    expected = [[True, True, False], [True, False, True], [True, False, True], [False, True, True], [True, True, False]]
    assert found.expected.tolist() == expected
    assert found.share == (2 + 1 + 1 + 1 + 1) / (2 + 2 + 2 + 2 + 2)
    assert found.per_learner.tolist() == [3 / 4, 1.0, 0.0]
    assert found.alive.sum(1).tolist() == [3, 3, 3, 3, 2] and found.reachable.sum(1).tolist() == [3, 3, 3, 3, 2]
    assert found.included.sum(1).tolist() == [2, 1, 2, 1, 1]


def test_the_close_of_a_round_is_its_commit() -> None:
    commit = rec(Kind.MERGE_COMMITTED, 5, round=1, fragment=0, version=1)
    records = [joined(0), healed(0), began(), opened(1, 1), merged(1, 2, 1, (0,)), lost(0, 3), commit, ended(9)]
    assert participation(tables(records)).expected.tolist() == [[False]]


def test_nobody_expected_is_no_number() -> None:
    found = participation(tables([joined(0), began(), opened(1, 1), merged(1, 2, 1), ended(3)]))
    assert np.isnan(found.share) and np.isnan(found.per_learner).all()


def test_a_run_in_virtual_time_against_a_walk_over_its_records() -> None:
    records = simulated()
    found = participation(tables(records))
    assert found.share > 0.9
    connected, ready, merges, since = set(), set(), [], {}
    faulty = [(r.peer, r.time_ns, r.detail["until_ns"]) for r in records if r.kind == Kind.FAULT_INJECTED]
    opened_ns: dict[int, int] = {}
    for record in records:
        m = learner_of(record.peer)
        if record.kind == Kind.LEARNER_JOINED:
            connected.add(m)
            since[m] = record.time_ns
            if record.reason == "process":
                ready.discard(m)
        elif record.kind == Kind.LEARNER_HEALED:
            ready.add(m)
            since[m] = record.time_ns
        elif record.kind == Kind.LEARNER_LOST:
            connected.discard(m)
        elif record.kind == Kind.ROUND_OPENED:
            opened_ns.setdefault(record.round, record.time_ns)
        elif record.kind == Kind.MERGE_COMMITTED:
            first = opened_ns[record.round]
            merges.append([
                m in connected and m in ready and since[m] <= first
                and not any(p == process_of(m) and a <= record.time_ns and b >= first for p, a, b in faulty)
                for m in range(CONFIG.learners)
            ])  # fmt: skip
    assert found.expected.tolist() == merges
