"""A text that is too small for the run is refused with what to type instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.config import ConfigError, DataConfig, ModelConfig, RunConfig
from workbench.datasets import Text, check_text, open_text
from workbench.datasets.stream import MemoryReader, TextFile

CONTEXT = 16


def run_config(path: Path, learners: int = 4, **data: Any) -> RunConfig:
    return RunConfig(
        learners=learners,
        model=ModelConfig(layers=1, width=16, heads=2, kv_heads=1, mlp=32, context=CONTEXT),
        data=DataConfig(source="path", path=str(path), **data),
    )


def refusal(config: RunConfig) -> str:
    with pytest.raises(ConfigError) as refused:
        check_text(open_text(config.data), config)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_training_text_below_one_sequence_per_learner(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(bytes(133))
    message = refusal(run_config(tmp_path / "text", holdout_every=2))
    assert "has 67 bytes; expected at least 68, one sequence of 17 for each of 4 learners" in message
    (tmp_path / "text").write_bytes(bytes(136))
    config = run_config(tmp_path / "text", holdout_every=2)
    check_text(open_text(config.data), config)


def test_heldout_text_below_one_sequence(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(bytes(200))
    message = refusal(run_config(tmp_path / "text", holdout_every=20))
    assert "held-out text has 10 bytes; expected at least 17" in message
    assert "--set data.holdout_every=10" in message


def test_too_few_files_for_file_shards(tmp_path: Path) -> None:
    for index in range(4):
        (tmp_path / f"{index}.txt").write_bytes(bytes(100))
    message = refusal(run_config(tmp_path, shards="file"))
    assert "finds 3 training files for 4 learners" in message
    assert "--set learners=3" in message and "--set data.shards=iid" in message


def test_file_shard_below_one_sequence(tmp_path: Path) -> None:
    sizes = {"a": 400, "b": 300, "c": 16, "held": 100}
    contents = {name: np.zeros(size, np.uint8) for name, size in sizes.items()}
    files = tuple(
        TextFile(name, name, 0, size, "heldout" if name == "held" else "train") for name, size in sizes.items()
    )
    text = Text(files, MemoryReader(contents))
    check_text(text, run_config(tmp_path, learners=2, shards="file"))
    with pytest.raises(ConfigError, match="leaves learner 2 with 16 bytes; expected at least 17"):
        check_text(text, run_config(tmp_path, learners=3, shards="file"))
