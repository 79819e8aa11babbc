"""Batches: pure functions of (seed, learner, own step n)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.config import DataConfig
from workbench.datasets import Text, batch, heldout, open_text


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Text:
    """Forty files in which bytes 0 and 1 name the file and the rest is noise."""
    folder = tmp_path_factory.mktemp("text")
    draw = np.random.default_rng(0)
    for index in range(40):
        (folder / f"{index}.bin").write_bytes(draw.bytes(5000 + 10 * index))
    return open_text(DataConfig(source="path", path=str(folder)))


def test_shape_and_type(text: Text) -> None:
    drawn = batch(text, 0, 0, 1, batch=4, context=16)
    assert drawn.shape == (4, 17)
    assert drawn.dtype == np.uint8


@given(st.integers(0, 2**63 - 1), st.integers(0, 4095), st.integers(1, 10**9))
def test_a_batch_depends_on_its_index_alone(text: Text, seed: int, learner: int, n: int) -> None:
    first = batch(text, seed, learner, n, batch=2, context=8)
    batch(text, seed, learner, n + 1, batch=2, context=8)
    assert np.array_equal(batch(text, seed, learner, n, batch=2, context=8), first)


def test_steps_learners_and_seeds_draw_different_windows(text: Text) -> None:
    drawn = {
        batch(text, seed, learner, n, batch=2, context=32).tobytes()
        for seed in range(3)
        for learner in range(4)
        for n in range(1, 50)
    }
    assert len(drawn) == 3 * 4 * 49


def test_training_batches_never_hold_heldout_text(text: Text) -> None:
    held = text.heldout.windows(np.array([0]), text.heldout.size)[0].tobytes()
    train = text.train.windows(np.array([0]), text.train.size)[0].tobytes()
    for n in range(1, 100):
        for row in batch(text, 0, 0, n, batch=4, context=15):
            assert row.tobytes() in train
            assert row.tobytes() not in held


def test_batches_come_from_the_whole_training_text(text: Text) -> None:
    train = text.train.windows(np.array([0]), text.train.size)[0].tobytes()
    positions = [train.index(row.tobytes()) for n in range(1, 200) for row in batch(text, 0, 1, n, 4, 15)]
    counts, _ = np.histogram(positions, bins=8, range=(0, text.train.size))
    assert counts.min() > 60  # 99.5 each on average, standard deviation 9.3


def test_file_shards_draw_from_the_learners_own_files(text: Text) -> None:
    shards = [text.shard(m, 4).windows(np.array([0]), text.shard(m, 4).size)[0].tobytes() for m in range(4)]
    for learner in range(4):
        for row in batch(text, 0, learner, 3, batch=8, context=15, shards="file", learners=4):
            assert [row.tobytes() in shard for shard in shards] == [m == learner for m in range(4)]


def test_accumulation_splits_one_larger_batch(text: Text) -> None:
    split = batch(text, 0, 2, 5, batch=2, context=8, accumulation=3)
    assert split.shape == (3, 2, 9)
    assert np.array_equal(split.reshape(6, 9), batch(text, 0, 2, 5, batch=6, context=8))


def test_the_last_window_of_the_text_can_be_drawn(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(bytes(range(20)))
    small = open_text(DataConfig(source="path", path=str(tmp_path / "small"), holdout_every=2))
    starts = {int(batch(small, 0, 0, n, batch=1, context=7)[0, 0]) for n in range(1, 60)}
    assert starts == {0, 1, 2}  # 10 bytes, windows of 8


def test_heldout_batches_are_fixed_and_spread_over_all_heldout_text(text: Text) -> None:
    first = heldout(text, batches=3, batch=4, context=16)
    assert first.shape == (3, 4, 17)
    assert np.array_equal(first, heldout(text, batches=3, batch=4, context=16))
    held = text.heldout.windows(np.array([0]), text.heldout.size)[0]
    assert np.array_equal(first[0, 0], held[:17])
    assert np.array_equal(first[-1, -1], held[-17:])
