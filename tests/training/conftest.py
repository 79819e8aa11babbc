"""A run small enough to compile in a second, and what is built from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from workbench.config import DataConfig, InnerConfig, ModelConfig, RunConfig
from workbench.datasets import Text, open_text
from workbench.training import LearnerArithmetic, TrainingProgram, initial_weights

SMALL = ModelConfig(layers=1, width=16, heads=2, kv_heads=1, mlp=32, context=16)


@pytest.fixture(scope="session")
def text_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File in which the next byte follows from the one before it."""
    path = tmp_path_factory.mktemp("text") / "counting.bin"
    path.write_bytes(np.arange(20_000, dtype=np.int64).astype(np.uint8).tobytes())
    return path


@pytest.fixture(scope="session")
def config(text_path: Path) -> RunConfig:
    return RunConfig(
        learners=2,
        rounds=40,
        period=4,
        fragments=4,
        eval_batches=2,
        model=SMALL,
        data=DataConfig(source="path", path=str(text_path)),
        inner=InnerConfig(batch=2, warmup=5, rate=1e-2),
    )


@pytest.fixture(scope="session")
def text(config: RunConfig) -> Text:
    return open_text(config.data)


@pytest.fixture(scope="session")
def program(config: RunConfig, text: Text) -> TrainingProgram:
    return TrainingProgram(config, text)


@pytest.fixture
def arithmetic(config: RunConfig, program: TrainingProgram) -> LearnerArithmetic:
    learner = LearnerArithmetic(config, 0, program, program.fragmentation)
    learner.load(initial_weights(config))
    return learner
