"""A run in which learners were added and removed replays bit for bit, and its machine decides again."""

from __future__ import annotations

from pathlib import Path

from tests.replay.runs import SECOND, config_of, live, replayed
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind
from workbench.replay.machines import Rerun

MS = SECOND // 1000
FAULTS = (
    Fault("add", 500 * MS),
    Fault("remove", 1500 * MS, learner=0),
    Fault("kill_syncer", 1800 * MS, for_ns=300 * MS),
    Fault("kill", 1900 * MS, learner=3, for_ns=200 * MS),
)


def test_a_run_with_both_replays_bit_for_bit(text_path: Path) -> None:
    config = config_of(text_path, rounds=40)
    run = live(config, FAULTS)
    merged = [r for r in run.records if r.kind == Kind.MERGED]
    assert any(3 in r.detail["learners"] for r in merged) and 0 not in merged[-1].detail["learners"]
    for order in ("journal", 1):
        report = replayed(run, order)
        assert report.bit_exact, report.first_difference
        assert report.final_digest == run.digest
    again = Rerun(config, run.records).run(run.inputs)
    assert again.equal, again.first_difference
