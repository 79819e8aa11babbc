"""What a storm costs in validation loss: three pairs of runs with real gradients, in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

import workbench as wb
from tests import storms
from workbench.config import RunConfig
from workbench.protocol.faults import NO_FAULTS, FaultPlan
from workbench.protocol.records import Record
from workbench.protocol.scenario import load_faults
from workbench.simulate.training_run import train_virtual
from workbench.tape.frames import read_journal

PAIRS = 3
SHORT = {
    "model.layers": 1, "model.width": 32, "model.mlp": 64, "model.context": 32, "inner.batch": 4,
    "virtual.step_s": 0.6, "rounds": 450, "eval_every": 25, "snapshot_every_s": 0.0,
}  # fmt: skip
"""So that the five minutes of the storm are some 500 steps of each learner."""


def trained(folder: Path, config: RunConfig, plan: FaultPlan) -> list[Record]:
    return read_journal(train_virtual(config, folder, plan).path / "journal").records


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_at_equal_merged_tokens_the_loss_is_within_the_spread_of_runs_without_faults(tmp_path: Path) -> None:
    calm, stormy = [], []
    for seed in range(PAIRS):
        config = wb.preset("storm").set({**SHORT, "seed": seed})
        calm.append(trained(tmp_path / f"calm-{seed}", config, NO_FAULTS))
        stormy.append(trained(tmp_path / f"storm-{seed}", config, load_faults(storms.STORM, config)))
    found = storms.losses_at_equal_tokens(calm, stormy)
    print(found)
    assert found.difference <= found.spread
