"""Vector clocks and moving averages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.protocol.clocks import ema, entry, happened_before, merged, ticked

CLOCKS = st.lists(st.integers(0, 9), max_size=5).map(tuple)


def test_merging_takes_the_elementwise_maximum_and_the_longer_length() -> None:
    assert merged((1, 5), (3, 2, 7)) == (3, 5, 7) == merged((3, 2, 7), (1, 5))
    assert merged((), (1,)) == (1,) and merged((2,), (2,)) == (2,)


@given(CLOCKS, CLOCKS, CLOCKS)
def test_merging_is_a_join(a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...]) -> None:
    assert merged(a, b) == merged(b, a)
    assert merged(a, merged(b, c)) == merged(merged(a, b), c)
    assert merged(a, a) == a
    assert all(entry(merged(a, b), i) == max(entry(a, i), entry(b, i)) for i in range(6))


def test_an_event_sets_its_own_entry_to_its_seq_and_axes_grow() -> None:
    assert ticked((4, 5, 6), 1, 9) == (4, 9, 6)
    assert ticked((), 2, 1) == (0, 0, 1)
    assert ticked((7,), 0, 8) == (8,)


def test_an_entry_that_is_not_there_is_zero() -> None:
    assert (entry((3,), 0), entry((3,), 1), entry((), 0)) == (3, 0, 0)


def test_before_means_that_the_other_has_heard_of_it() -> None:
    sent = ticked((), 0, 1)
    received = ticked(merged((), sent), 1, 1)
    later = ticked(sent, 0, 2)
    assert happened_before(sent, 0, 1, received) and happened_before(sent, 0, 1, later)
    assert not happened_before(received, 1, 1, sent)
    assert not happened_before(later, 0, 2, received) and not happened_before(received, 1, 1, later), "concurrent"
    assert not happened_before(sent, 0, 1, sent)


def test_the_first_sample_is_taken_whole_and_an_eighth_of_the_next() -> None:
    assert ema(-1.0, 8.0) == 8.0
    assert ema(8.0, 0.0) == 7.0
    assert ema(0.0, 8.0) == pytest.approx(1.0)
