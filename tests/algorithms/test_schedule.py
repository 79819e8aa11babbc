import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.algorithms.schedule import due_fragment, next_due, offsets
from workbench.config import ConfigError

SIZES = st.integers(1, 60).flatmap(lambda h: st.tuples(st.integers(1, h), st.just(h)))


@given(SIZES)
def test_offsets_are_distinct_and_spread_evenly(size: tuple[int, int]) -> None:
    fragments, period = size
    result = offsets(fragments, period)
    assert len(set(result)) == fragments
    assert result == tuple(sorted(result))
    assert result[0] >= 0 and result[-1] < period
    gaps = [b - a for a, b in zip(result, (*result[1:], result[0] + period), strict=True)]
    assert max(gaps) - min(gaps) <= 1


@given(SIZES, st.integers(0, 10**9))
def test_each_fragment_is_due_once_in_any_period(size: tuple[int, int], start: int) -> None:
    fragments, period = size
    places = offsets(fragments, period)
    due = [due_fragment(t, places, period) for t in range(start, start + period)]
    assert sorted(p for p in due if p >= 0) == list(range(fragments))


@given(SIZES, st.integers(0, 10**9))
def test_next_due_is_the_first_step_after(size: tuple[int, int], step: int) -> None:
    fragments, period = size
    places = offsets(fragments, period)
    found = next_due(step, places, period)
    assert found == next(t for t in range(step + 1, step + period + 1) if due_fragment(t, places, period) >= 0)


def test_one_fragment_a_step_when_there_are_as_many_as_steps() -> None:
    assert [due_fragment(t, offsets(3, 3), 3) for t in range(6)] == [0, 1, 2, 0, 1, 2]
    assert offsets(12, 24) == tuple(range(0, 24, 2))


@pytest.mark.parametrize(("fragments", "period"), [(0, 4), (5, 4), (1, 0)])
def test_impossible_schedules_are_refused_with_both_numbers(fragments: int, period: int) -> None:
    with pytest.raises(ConfigError, match=rf"fragments = {fragments} .*period = {period}"):
        offsets(fragments, period)
