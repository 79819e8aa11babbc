import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.algorithms import oracle
from workbench.algorithms.folds import FOLDS
from workbench.config.validate import CHOICES

VECTORS = hnp.arrays(np.float32, (3, 20), elements=st.floats(-100, 100, width=32))


def test_table_has_the_words_of_the_configuration() -> None:
    assert tuple(FOLDS) == CHOICES["fold"]


@given(VECTORS)
def test_overwrite_takes_the_update_bit_for_bit(vectors: np.ndarray) -> None:
    local, update, reference = vectors
    assert FOLDS["overwrite"](local, update, reference).tobytes() == update.tobytes()


@given(VECTORS, st.floats(0, 1))
def test_blend(vectors: np.ndarray, alpha: float) -> None:
    local, update, _ = vectors
    expected = alpha * local.astype(np.float64) + (1 - alpha) * update.astype(np.float64)
    assert oracle.ulps(FOLDS["blend"](local, update, alpha=alpha), expected, np.abs(local) + np.abs(update)) <= 4


def test_ends_of_the_blend() -> None:
    local, update = np.random.default_rng(0).standard_normal((2, 700)).astype(np.float32)
    assert np.array_equal(FOLDS["blend"](local, update, alpha=0.0), update)
    assert np.array_equal(FOLDS["blend"](local, update, alpha=1.0), local)


@given(VECTORS)
def test_delay_corrected(vectors: np.ndarray) -> None:
    local, update, reference = vectors
    expected = update.astype(np.float64) + (local.astype(np.float64) - reference)
    scale = np.abs(local) + np.abs(update) + np.abs(reference)
    assert oracle.ulps(FOLDS["delay_corrected"](local, update, reference), expected, scale) <= 4
    no_step_since = FOLDS["delay_corrected"](local, update, local)
    assert np.array_equal(no_step_since, np.where(np.abs(update) < oracle.SMALLEST, 0, update))


def test_only_a_delay_corrected_fold_keeps_the_tail() -> None:
    assert [rule for rule in FOLDS if FOLDS[rule].keeps_tail] == ["delay_corrected"]
    with pytest.raises(ValueError, match="need a reference"):
        FOLDS["delay_corrected"](np.ones(3, np.float32), np.ones(3, np.float32))


@pytest.mark.parametrize("rule", sorted(FOLDS))
def test_folds_return_fresh_memory_and_leave_their_inputs(rule: str) -> None:
    local, update, reference = np.random.default_rng(1).standard_normal((3, 50)).astype(np.float32)
    before = [x.copy() for x in (local, update, reference)]
    for x in (local, update, reference):
        x.flags.writeable = False
    folded = FOLDS[rule](local, update, reference, 0.5)
    assert folded.dtype == np.float32 and folded.flags.writeable
    assert not any(np.shares_memory(folded, x) for x in (local, update, reference))
    assert all(np.array_equal(x, y) for x, y in zip(before, (local, update, reference), strict=True))
    assert folded.tobytes() == FOLDS[rule](local, update, reference, 0.5).tobytes()
