"""What a storm costs in validation loss: three pairs of runs with real gradients, in virtual time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from tests import storms
from workbench.config import RunConfig
from workbench.protocol.faults import NO_FAULTS, FaultPlan
from workbench.protocol.records import Kind
from workbench.protocol.scenario import load_faults
from workbench.simulate.training_run import train_virtual
from workbench.tape.frames import read_journal

PAIRS = 3
SHORT = {
    "model.layers": 1, "model.width": 32, "model.mlp": 64, "model.context": 32, "inner.batch": 4,
    "virtual.step_s": 0.6, "rounds": 450, "eval_every": 25, "snapshot_every_s": 0.0,
}  # fmt: skip
"""So that the five minutes of the storm are some 500 steps of each learner."""


def losses(folder: Path, config: RunConfig, plan: FaultPlan) -> tuple[list[float], list[float]]:
    """Tokens merged and validation loss at each evaluation."""
    records = read_journal(train_virtual(config, folder, plan).path / "journal").records
    evaluated = storms.of_kind(records, Kind.EVALUATED)
    return [float(r.tokens) for r in evaluated], [r.value for r in evaluated]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_at_equal_merged_tokens_the_loss_is_within_the_spread_of_runs_without_faults(tmp_path: Path) -> None:
    calm, stormy = [], []
    for seed in range(PAIRS):
        config = wb.preset("storm").set({**SHORT, "seed": seed})
        calm.append(losses(tmp_path / f"calm-{seed}", config, NO_FAULTS))
        stormy.append(losses(tmp_path / f"storm-{seed}", config, load_faults(storms.STORM, config)))
    tokens = min(run[0][-1] for run in (*calm, *stormy))
    without, within = ([float(np.interp(tokens, *run)) for run in runs] for runs in (calm, stormy))
    print(f"at {tokens:,.0f} merged tokens: without faults {without}, in the storm {within}")
    assert abs(np.mean(within) - np.mean(without)) <= max(without) - min(without)
