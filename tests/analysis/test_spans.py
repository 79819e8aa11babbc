from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.analysis.arrays import spans
from workbench.analysis.arrays.lookup import last_before

LENGTH = 24
sets = st.lists(st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH)), max_size=6)


def bits(given: list[tuple[int, int]]) -> np.ndarray:
    result = np.zeros(LENGTH, bool)
    for start, end in given:
        result[start:end] = True
    return result


def of(array: np.ndarray) -> np.ndarray:
    return bits([(int(a), int(b)) for a, b in array])


@given(sets, sets, st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH)), st.integers(1, 3))
def test_spans_are_the_sets_of_their_times(
    a: list[tuple[int, int]], b: list[tuple[int, int]], window: tuple[int, int], count: int
) -> None:
    one, two = spans.union(a), spans.union(b)
    assert (one[:, 1] > one[:, 0]).all() and (one[1:, 0] > one[:-1, 1]).all()
    assert (of(one) == bits(a)).all() and spans.length(one) == bits(a).sum()
    assert (of(spans.intersect(one, two)) == (bits(a) & bits(b))).all()
    assert (of(spans.subtract(one, two)) == (bits(a) & ~bits(b))).all()
    assert (spans.inside(one, np.arange(LENGTH)) == bits(a)).all()
    assert spans.covered(one, window[0], window[1]) == bits(a)[window[0] : window[1]].sum()
    assert (of(spans.clip(one, min(window), max(window))) == (bits(a) & bits([(min(window), max(window))]))).all()
    several = [bits(a).astype(int), bits(b).astype(int), bits([window]).astype(int)]
    assert (of(spans.at_least([one, two, spans.union([window])], count)) == (sum(several) >= count)).all()
    start, end = min(window), max(window)
    if start < end:
        assert bool(spans.contains(one, np.array([start]), np.array([end]))[0]) == bool(bits(a)[start:end].all())
    meets = any(low <= end and high >= start for low, high in one.tolist())
    assert bool(spans.touches(one, np.array([start]), np.array([end]))[0]) == meets


rows = st.lists(st.tuples(st.integers(-2, 3), st.integers(0, 2)), max_size=12)
queries = st.lists(st.tuples(st.integers(-2, 3), st.integers(0, 2), st.integers(0, 30)), min_size=1, max_size=8)


@given(rows, queries, st.sampled_from([1, 2**40]))
def test_last_before_finds_the_row_that_a_search_finds(
    keys: list[tuple[int, int]], wanted: list[tuple[int, int, int]], scale: int
) -> None:
    columns = [np.array([key[i] for key in keys], np.int64) * scale for i in range(2)]
    asked = [np.array([key[i] for key in wanted], np.int64) * scale for i in range(2)]
    order = np.arange(len(keys)) * 2
    found = last_before(columns, order, asked, np.array([key[2] for key in wanted]))
    for (first, second, before), row in zip(wanted, found.tolist(), strict=True):
        fitting = [i for i, key in enumerate(keys) if key == (first, second) and 2 * i < before]
        assert row == (fitting[-1] if fitting else -1)
