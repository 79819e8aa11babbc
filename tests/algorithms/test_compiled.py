import numpy as np
import pytest
from numba import njit
from numba.core import caching

from workbench.algorithms.compiled import addresses, aligned, kernel


def test_kernels_are_compiled_anew_where_no_cache_can_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def double(x: float) -> float:
        return 2 * x

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="no locator"):
        njit(cache=True)(double)
    assert kernel(double)(2.0) == 4.0


@pytest.mark.parametrize("dtype", [np.float32, np.uint16, np.int64])
@pytest.mark.parametrize("shape", [(1,), (100,), (3, 17), (2, 3, 33)])
def test_aligned_rows_begin_at_cache_lines(shape: tuple[int, ...], dtype: type) -> None:
    array = aligned(shape, dtype)
    assert array.shape == shape and array.dtype == dtype and not array.any()
    starts = [array[index].ctypes.data for index in np.ndindex(*shape[:-1])]
    assert all(start % 64 == 0 for start in starts)


@pytest.mark.parametrize(
    "bad",
    [np.zeros(4), np.zeros((2, 2), np.float32), np.zeros(8, np.float32)[::2]],
    ids=["type", "shape", "stride"],
)
def test_only_contiguous_float32_vectors_have_addresses(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected a contiguous float32 vector"):
        addresses([np.zeros(4, np.float32), bad])


def test_long_vectors_lie_at_different_places_within_their_pages() -> None:
    vectors = [aligned((5000,)) for _ in range(8)] + list(aligned((4, 5000)))
    assert len({vector.ctypes.data % 4096 for vector in vectors[:8]}) == 8
    assert len({vector.ctypes.data % 4096 for vector in vectors[8:]}) == 4
