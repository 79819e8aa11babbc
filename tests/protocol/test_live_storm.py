from __future__ import annotations

import pytest

from workbench.protocol.live_storm import KINDS, RATE_MAX, Storm
from workbench.protocol.scenario import fault_of

STEP_S = 0.05


def test_a_storm_strikes_as_often_as_its_rate_says_whoever_and_whatever_is_allowed() -> None:
    storm = Storm(learners=3, seed=1)
    storm.rate, storm.kinds = 30.0, ("nan", "stall")
    struck = [strike for _ in range(40_000) for strike in storm.advance(STEP_S)]
    expected = 40_000 * STEP_S / 60 * 30
    assert abs(len(struck) - expected) < 4 * expected**0.5 and storm.count == len(struck)
    assert {one.learner for one in struck} == {0, 1, 2} and {one.kind for one in struck} == {"nan", "stall"}


def test_a_rate_acts_at_once_and_none_is_calm() -> None:
    calm, storm = Storm(2), Storm(2)
    assert [calm.advance(STEP_S) for _ in range(1000)] == [[]] * 1000
    for rate in (0.0, RATE_MAX):
        storm.rate = rate
        strikes = sum(len(storm.advance(STEP_S)) for _ in range(2400))
        assert (strikes > 60) == (rate > 0)


def test_the_same_seed_is_the_same_storm() -> None:
    storms = [Storm(4, seed) for seed in (5, 5, 6)]
    for storm in storms:
        storm.rate, storm.kinds = 60.0, KINDS
    first, again, other = ([strike for _ in range(500) for strike in storm.advance(1.0)] for storm in storms)
    assert first == again != other


def test_every_kind_of_a_storm_is_a_fault_with_usual_numbers() -> None:
    for kind in KINDS:
        assert fault_of({"kind": kind, "learner": 1}, kind, 2, now=True).kind == kind


@pytest.mark.parametrize("seed", range(3))
def test_a_storm_of_any_seed_waits_before_it_strikes(seed: int) -> None:
    storm = Storm(2, seed)
    storm.rate = 1.0
    assert len(storm.advance(1e-6)) == 0


def test_a_storm_strikes_whoever_is_there_now() -> None:
    storm = Storm(2)
    storm.rate = RATE_MAX
    storm.learners = (1, 4)
    assert {one.learner for _ in range(100) for one in storm.advance(1.0)} == {1, 4}
    struck, storm.learners = storm.count, ()
    assert [storm.advance(10.0) for _ in range(10)] == [[]] * 10 and storm.count == struck
