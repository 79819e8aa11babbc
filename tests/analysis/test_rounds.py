from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.analysis.runs import CONFIG, merged, rec, simulated
from workbench.analysis.arrays.rounds import DURATIONS, OUTCOMES, rounds
from workbench.analysis.from_records import tables
from workbench.protocol.records import Kind, Record


def test_durations_by_hand() -> None:
    def at(kind: Kind, time_s: float, round_: int = 1, **columns: Any) -> Record:
        return rec(kind, time_s, round=round_, fragment=0, **columns)

    merge = merged(1, 9, 1, (0, 2))
    merge.detail["pull_ns"] = 8 * 10**9
    found = rounds(tables([
        at(Kind.ROUND_OPENED, 1), at(Kind.ROUND_READY, 2), at(Kind.QUORUM_REACHED, 3), at(Kind.QUORUM_REACHED, 4),
        at(Kind.GRACE_ENDED, 6), merge, at(Kind.MERGE_COMMITTED, 9.5, version=1), at(Kind.UPDATE_SENT, 9.75, version=1),
        at(Kind.ROUND_OPENED, 10, 2), at(Kind.ROUND_READY, 11, 2), at(Kind.ROUND_SKIPPED, 12, 2),
        at(Kind.ROUND_OPENED, 13, 3), at(Kind.ROUND_ABORTED, 14, 3), at(Kind.ROUND_OPENED, 15, 4),
    ]))  # fmt: skip
    assert [OUTCOMES[i] for i in found["outcome"]] == ["merged", "skipped", "aborted", "open"]
    assert [found[name][0] for name in DURATIONS] == pytest.approx([1, 2, 2, 2, 1, 0.5, 0.25])
    assert found["included"].tolist() == [2, 0, 0, 0] and found["version"].tolist() == [1, -1, -1, -1]
    assert found["open_s"][1] == 1 and np.isnan(found["grace_s"][1:]).all()


def test_a_run_in_virtual_time() -> None:
    records = simulated()
    found = rounds(tables(records))
    opened = [r.round for r in records if r.kind == Kind.ROUND_OPENED]
    merges = [r for r in records if r.kind == Kind.MERGED]
    assert found["round"].tolist() == opened and (found["outcome"] == 1).sum() == len(merges) == CONFIG.rounds
    assert {name: bool((found[name][found["outcome"] == 1] >= 0).all()) for name in DURATIONS} == dict.fromkeys(
        DURATIONS, True
    )
    by_round = {r.round: len(r.detail["learners"]) for r in merges}
    assert found["included"].tolist() == [by_round.get(t, 0) for t in opened]
    ready = {r.round: r.time_ns for r in reversed(records) if r.kind == Kind.ROUND_READY}
    committed = {r.round: r.time_ns for r in records if r.kind == Kind.MERGE_COMMITTED}
    spent = np.sum([found[name] for name in DURATIONS[1:6]], 0)[found["outcome"] == 1]
    assert spent.tolist() == pytest.approx([(committed[t] - ready[t]) * 1e-9 for t in opened if t in committed])
