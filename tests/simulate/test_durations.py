from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.simulate.worlds import MS, SECOND
from workbench.config import ConfigError, VirtualConfig
from workbench.simulate.durations import StepTimes, read_trace

SEED = 7


def steps(learner: int = 0, count: int = 4000, seed: int = SEED, **virtual: Any) -> np.ndarray:
    """Durations of the first steps of a learner [s]."""
    times = StepTimes(VirtualConfig(**virtual), seed)
    return np.array([times.step_ns(learner, n) for n in range(1, count + 1)]) / SECOND


def test_fixed_steps_are_all_alike() -> None:
    assert set(steps(step_model="fixed", step_s=0.25)) == {0.25}


def test_jitter_is_gaussian_with_the_given_coefficient_of_variation() -> None:
    found = steps(step_model="jitter", step_s=0.1, jitter=0.1)
    assert found.mean() == pytest.approx(0.1, rel=0.01)
    assert found.std() / found.mean() == pytest.approx(0.1, rel=0.05)
    z = (found - found.mean()) / found.std()
    assert abs((z**3).mean()) < 0.15 and (z**4).mean() == pytest.approx(3.0, abs=0.3)
    assert np.mean(np.abs(z) < 1) == pytest.approx(0.683, abs=0.02)


def test_no_step_is_shorter_than_a_twentieth_of_the_mean() -> None:
    assert steps(step_model="jitter", step_s=0.1, jitter=2.0).min() == pytest.approx(0.005)


def test_heavy_steps_have_the_mean_the_spread_and_a_longer_tail() -> None:
    found = steps(step_model="heavy", step_s=0.1, jitter=0.5, count=20_000)
    assert found.mean() == pytest.approx(0.1, rel=0.02)
    assert found.std() / found.mean() == pytest.approx(0.5, rel=0.08)
    assert np.log(found).std() == pytest.approx(np.sqrt(np.log1p(0.25)), rel=0.03)
    assert found.max() > 0.1 + 5 * 0.05


@pytest.mark.parametrize("model", ["fixed", "jitter", "heavy"])
def test_a_slow_learner_takes_longer_by_its_factor(model: str) -> None:
    plain = steps(1, 50, step_model=model, slow=())
    slowed = steps(1, 50, step_model=model, slow=(1.0, 1.18))
    assert slowed == pytest.approx(1.18 * plain, abs=1e-8)
    assert (steps(0, 50, step_model=model, slow=(1.0, 1.18)) == steps(0, 50, step_model=model)).all()


def test_a_duration_is_a_function_of_seed_learner_and_step_alone() -> None:
    times = StepTimes(VirtualConfig(), SEED)
    backwards = [times.step_ns(0, n) for n in range(50, 0, -1)]
    assert backwards[::-1] == [StepTimes(VirtualConfig(), SEED).step_ns(0, n) for n in range(1, 51)]
    first, other_learner, other_seed = steps(0, 2000), steps(1, 2000), steps(0, 2000, seed=8)
    assert abs(np.corrcoef(first, other_learner)[0, 1]) < 0.07
    assert abs(np.corrcoef(first, other_seed)[0, 1]) < 0.07
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.07


def test_delays() -> None:
    assert {StepTimes(VirtualConfig(delay_s=0.02), SEED).delay_ns(i) for i in range(5)} == {20 * MS}
    times = StepTimes(VirtualConfig(delay_s=0.02, delay_jitter=0.5), SEED)
    found = np.array([times.delay_ns(i) for i in range(4000)]) / MS
    assert found.mean() == pytest.approx(20, rel=0.05) and found.min() == pytest.approx(2.0)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "steps.csv"


def test_a_trace_is_repeated_when_it_ends(trace: Path) -> None:
    trace.write_text("0.1\n0.2\n\n0.3\n")
    assert read_trace(str(trace)) == {-1: [0.1, 0.2, 0.3]}
    found = steps(5, 5, step_model="trace", trace=str(trace))
    assert found.tolist() == [0.1, 0.2, 0.3, 0.1, 0.2]


def test_a_trace_may_name_learners_and_those_it_does_not_name_get_all(trace: Path) -> None:
    trace.write_text("0,0.1\n1, 0.5\n0,0.2\n")
    assert read_trace(str(trace)) == {0: [0.1, 0.2], 1: [0.5], -1: [0.1, 0.2, 0.5]}
    given: dict[str, Any] = {"step_model": "trace", "trace": str(trace)}
    assert steps(1, 2, **given).tolist() == [0.5, 0.5]
    assert steps(9, 4, **given).tolist() == [0.1, 0.2, 0.5, 0.1]
    assert steps(0, 2, slow=(2.0,), **given).tolist() == [0.2, 0.4]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "holds no durations"),
        ("\n \n", "holds no durations"),
        ("0.1\nfast\n", "line 2: 'fast' is not 'seconds' or 'learner,seconds'"),
        ("0.1\n\n0,1,2\n", "line 3: '0,1,2' is not"),
        ("0.1 0.2\n", "line 1: '0.1 0.2' is not"),
        ("-3,0.1\n", "line 1: '-3,0.1' is not"),
        ("a,0.1\n", "line 1: 'a,0.1' is not"),
        ("0.1\n0\n", "line 2: a step of 0.0 s; allowed: 1e-06 to 100000"),
        ("-1\n", "line 1: a step of -1.0 s"),
        ("nan\n", "line 1: a step of nan s"),
        ("inf\n", "line 1: a step of inf s"),
    ],
)
def test_a_trace_that_cannot_be_used_is_refused_with_its_line(trace: Path, text: str, complaint: str) -> None:
    trace.write_text(text)
    with pytest.raises(ConfigError) as raised:
        read_trace(str(trace))
    assert complaint in str(raised.value) and str(trace) in str(raised.value)


def test_a_trace_that_cannot_be_read_is_refused(trace: Path, tmp_path: Path) -> None:
    for path in (trace, tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            read_trace(str(path))
    trace.write_bytes(b"\xff\xfe0.1")
    with pytest.raises(ConfigError, match="cannot be read"):
        StepTimes(VirtualConfig(step_model="trace", trace=str(trace)), SEED)
