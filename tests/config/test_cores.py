"""The text of ``machine.cores``, and threads in a configuration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.config import ConfigError, RunConfig, load
from workbench.config.cores import cores_of, parse_cores


def test_lists_name_the_cores_of_each_learner() -> None:
    config = load(sets=["learners=2", "machine.cores=3,0-1 2", "machine.threads=2"])
    assert parse_cores(config.machine.cores) == [(0, 1, 3), (2,)]
    assert (config.machine.threads, load(sets=["machine.threads=none"]).machine.threads) == (2, None)
    assert cores_of("none", 1, 4, range(8)) == ()
    assert cores_of("0 1-2", 1, 2, range(8)) == (1, 2)


@given(st.integers(1, 40), st.lists(st.integers(0, 500), min_size=1, max_size=40, unique=True))
def test_spread_uses_every_core_and_is_even(learners: int, available: list[int]) -> None:
    dealt = [cores_of("spread", m, learners, available) for m in range(learners)]
    assert sorted({core for cores in dealt for core in cores}) == sorted(available)[: max(learners, len(available))]
    lengths = [len(cores) for cores in dealt]
    assert min(lengths) >= 1 and max(lengths) - min(lengths) <= 1
    assert len(available) < learners or sum(lengths) == len(available)


@pytest.mark.parametrize("text", ["", "all", "0,,1 2", "1-0 2", "-1 2", "0;1", "0 99999999", "1- 2", "²"])
def test_what_names_no_cores_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"machine.cores = .* is unknown; allowed: none, spread, apart, or one list"):
        RunConfig(learners=2).set({"machine.cores": text})


def test_lists_are_as_many_as_learners_and_threads_are_possible() -> None:
    with pytest.raises(ConfigError, match="holds 2 lists; allowed: one for each of learners = 3"):
        RunConfig(learners=3).set({"machine.cores": "0 1"})
    for threads in (0, -1, 5000):
        with pytest.raises(ConfigError, match=f"machine.threads = {threads} is out of range; allowed: none, or 1"):
            RunConfig().set({"machine.threads": threads})
