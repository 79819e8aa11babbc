"""Random runs with faults and live changes replay bit for bit, in journal order and in another causal order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.replay.runs import SECOND, config_of, live, replayed
from workbench.config import VirtualConfig
from workbench.replay.machines import Rerun
from workbench.simulate import schedules

RUNS = 50
ROUNDS = 10
SHARE = ROUNDS / schedules.ROUNDS
"""Of the length for which the explorer draws its schedules; faults and changes come earlier by as much."""


@pytest.mark.parametrize("seed", range(RUNS))
def test_a_random_run_replays_in_journal_order_and_in_another(seed: int, text_path: Path) -> None:
    schedule = schedules.draw(seed)
    virtual = VirtualConfig(**{**schedule.virtual, "slow": tuple(schedule.virtual["slow"])})
    config = config_of(text_path, **{**schedule.config, "rounds": ROUNDS, "seed": seed, "virtual": virtual})
    faults = [replace(fault, at_ns=int(fault.at_ns * SHARE)) for fault in schedule.faults]
    changes = [(change.at_ns * SHARE / SECOND, change.values) for change in schedule.changes]
    if seed % 2:
        changes.append((0.4 + seed / 100, {"inner.rate": 5e-3, "inner.batch": 1}))
    run = live(config, faults, changes, release_every_ns=schedule.release_every_ns)
    for order in ("journal", seed):
        report = replayed(run, order)
        assert report.bit_exact, report.first_difference
        assert report.merges_compared >= ROUNDS
        assert report.final_digest == run.digest
    again = Rerun(config, run.records).run(run.inputs)
    assert again.equal, again.first_difference
