import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.algorithms.weights import WEIGHTS
from workbench.config.validate import CHOICES

COUNTS = st.integers(0, 10**12)


def test_table_has_the_words_of_the_configuration() -> None:
    assert tuple(WEIGHTS) == CHOICES["weights"]


@pytest.mark.parametrize(("tokens", "weight"), [(22 * 4096, 369_098_752), (22 * 2048, 92_274_688)])
def test_tokens_squared_per_step(tokens: int, weight: float) -> None:
    assert WEIGHTS["tokens2_per_step"](22, tokens, 0) == weight


@pytest.mark.parametrize("rule", WEIGHTS)
@given(steps=COUNTS, tokens=COUNTS, age=st.integers(0, 1000))
def test_weights_are_zero_exactly_without_work(rule: str, steps: int, tokens: int, age: int) -> None:
    weight = WEIGHTS[rule](steps, tokens, age)
    assert isinstance(weight, float)
    assert (weight > 0) == (steps > 0 and tokens > 0)


@given(batch=st.integers(1, 10**6), steps=st.integers(1, 10**4), factor=st.integers(1, 100))
def test_default_is_linear_in_steps_and_quadratic_in_batch(batch: int, steps: int, factor: int) -> None:
    rule = WEIGHTS["tokens2_per_step"]
    one = rule(steps, steps * batch, 0)
    assert rule(factor * steps, factor * steps * batch, 0) == pytest.approx(factor * one)
    assert rule(steps, steps * batch * factor, 0) == pytest.approx(factor**2 * one)


def test_uniform_counts_heads_and_tokens_counts_tokens() -> None:
    assert WEIGHTS["uniform"](3, 7, 5) == 1.0
    assert WEIGHTS["tokens"](3, 7, 5) == 7.0


def test_plain_rules_load_no_array_library() -> None:
    code = (
        "import sys, workbench.algorithms.weights, workbench.algorithms.schedule; "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'numba', 'jax')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
