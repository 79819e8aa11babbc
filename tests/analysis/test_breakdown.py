from __future__ import annotations

import numpy as np
import pytest

from tests.analysis.runs import EVERY_FAULT, rec, simulated
from workbench.analysis import breakdown
from workbench.analysis.from_records import tables
from workbench.protocol.records import Kind, process_of


def test_states_of_a_round_by_hand() -> None:
    of = {"round": 4, "fragment": 0}
    times = {"first_ready_ns": 2, "quorum_ns": 3, "grace_ns": 5, "pull_ns": 9, "merge_ns": 14}
    found = breakdown(tables([
        rec(Kind.ROUND_OPENED, 1.0, **of), rec(Kind.ROUND_READY, 2.0, peer=process_of(0), **of),
        rec(Kind.QUORUM_REACHED, 3.0, **of), rec(Kind.GRACE_ENDED, 5.0, **of),
        rec(Kind.MERGED, 14.0, version=1, detail={name: value * 10**9 for name, value in times.items()}, **of),
        rec(Kind.MERGE_COMMITTED, 14.5, version=1, **of), rec(Kind.UPDATE_SENT, 14.6, version=1, **of),
        rec(Kind.ROUND_OPENED, 15.0, round=5, fragment=1), rec(Kind.ROUND_READY, 16.0, round=5, fragment=1),
    ]))  # fmt: skip
    merged, pending = found["state_s"].values
    assert merged.tolist() == pytest.approx([1, 2, 4, 5, 0.5, 0.1]) and np.isnan(pending).all()
    assert found["open_s"].values.tolist() == [1, 1] and found["total_s"].values[0] == pytest.approx(12.6)
    assert found["share"].values.tolist() == pytest.approx((merged / 12.6).tolist())
    assert found["state"].values.tolist() == ["quorum", "grace", "pull", "merge", "commit", "send"]
    assert found["count"].values.tolist() == [1] * 6 and found["outcome"].values.tolist() == ["merged", "open"]


def test_states_of_a_simulated_run_against_a_walk_over_its_records() -> None:
    records = simulated(EVERY_FAULT)
    found = breakdown(tables(records))
    last: dict[tuple[int, int], int] = {}
    wanted: dict[int, list[float]] = {}
    for record in records:
        last[record.kind, record.round] = record.time_ns
        if record.kind == Kind.MERGED:
            chain: list[float] = [
                last[kind, record.round] for kind in (Kind.ROUND_READY, Kind.QUORUM_REACHED, Kind.GRACE_ENDED)
            ]
            wanted[record.round] = [*chain, record.detail["pull_ns"], record.time_ns]
        elif record.kind in (Kind.MERGE_COMMITTED, Kind.UPDATE_SENT) and len(wanted.get(record.round, [0] * 7)) < 7:
            wanted[record.round].append(record.time_ns)
    rows = {int(number): row for row, number in enumerate(found["round"].values) if found["outcome"][row] == "merged"}
    assert rows.keys() == wanted.keys() and len(wanted) == 60
    for number, chain in wanted.items():
        assert found["state_s"].values[rows[number]].tolist() == pytest.approx((np.diff(chain) * 1e-9).tolist())
    whole = found["state_s"].values[sorted(rows.values())]
    assert found["share"].values.tolist() == pytest.approx((whole.sum(0) / whole.sum()).tolist())
    assert found["median_s"].values.tolist() == pytest.approx(np.median(whole, 0).tolist())
    assert float(found["share"].sum()) == pytest.approx(1.0)


def test_no_rounds_no_shares() -> None:
    found = breakdown(tables([]))
    assert found.sizes["row"] == 0 and np.isnan(found["share"]).all()
