"""Validation loss against the mean of its batches."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.config import RunConfig
from workbench.models import build, cross_entropy
from workbench.training import TrainingProgram, initial_weights
from workbench.training.evaluation import compiled_loss


def test_validation_loss_is_the_mean_over_the_heldout_batches(config: RunConfig, program: TrainingProgram) -> None:
    from workbench.algorithms.seeds import sub_seed

    model = build(config.model, sub_seed(config.seed, "weights"))
    expected = np.mean([float(cross_entropy(model, batch)) for batch in program.heldout])
    assert program.evaluate(initial_weights(config)) == pytest.approx(expected, rel=1e-5)
    assert program.heldout.shape == (2, 2, 17)


def test_one_compiled_form_serves_all_batches(config: RunConfig, program: TrainingProgram) -> None:
    program.evaluate(initial_weights(config))
    assert compiled_loss(config.model)._cache_size() == 1  # type: ignore[attr-defined]
