"""Conformance of the merge rules (DESIGN section 8): one table of what each promises, one battery over all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.algorithms import oracle
from tests.algorithms.merging_help import combine, random_differences
from workbench.algorithms.aggregators import AGGREGATORS
from workbench.config.validate import CHOICES


class Promise(NamedTuple):
    translation: bool
    rotation: bool
    norm: str
    """``exact``: that of the weighted mean of the norms; ``at_most``: no more than that."""
    breakdown: float


PROMISES = {
    "mean": Promise(translation=True, rotation=True, norm="at_most", breakdown=0.0),
    "rda": Promise(translation=False, rotation=True, norm="exact", breakdown=0.0),
}
RULES = sorted(AGGREGATORS)
SIZES = (1, 2, 63, 511, 512, 513, 1500)

NUMBERS = st.one_of(st.just(0.0), st.floats(2**-10, 1e3, width=32), st.floats(-1e3, -(2**-10), width=32))
DIFFERENCES = hnp.arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 12)), elements=NUMBERS)
WEIGHTS = st.lists(st.floats(0.01, 1e9), min_size=6, max_size=6)


def test_each_member_has_its_promises_and_its_word() -> None:
    assert set(PROMISES) == set(AGGREGATORS) == set(oracle.AGGREGATORS) == set(CHOICES["merge"])


def size_of_terms(v: np.ndarray, w: Any) -> np.ndarray:
    """What is added up for each element, and for RDA the length that is shared out: scale of the rounding."""
    w = np.asarray(w, np.float64) / np.sum(w)
    return (w[:, None] * np.abs(np.asarray(v, np.float64))).sum(0)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", SIZES)
def test_one_input_gives_identity(rule: str, size: int) -> None:
    v = random_differences(size, 1, size)
    assert np.array_equal(combine(rule, v, [3.7])[0], v[0])


@pytest.mark.parametrize("rule", RULES)
@given(v=DIFFERENCES, w=WEIGHTS)
def test_mean_of_equals_is_that_value(rule: str, v: np.ndarray, w: Any) -> None:
    same = np.repeat(v[:1], len(v), axis=0)
    assert oracle.ulps(combine(rule, same, w[: len(v)])[0], v[0], np.abs(v[0]).max()) <= 8


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("learners", range(1, 10))
@pytest.mark.parametrize("size", SIZES)
def test_oracle_against_compiled_form(rule: str, learners: int, size: int) -> None:
    v = random_differences(100 * learners + size, learners, size)
    w = np.random.default_rng(size).uniform(0.1, 10, learners)
    expected = oracle.AGGREGATORS[rule](v, w)
    scale = np.maximum(size_of_terms(v, w), np.abs(expected).max() if rule == "rda" else 0)
    assert oracle.ulps(combine(rule, v, w)[0], expected, scale) <= 4


@pytest.mark.parametrize("rule", RULES)
@given(v=DIFFERENCES, w=WEIGHTS)
def test_oracle_against_compiled_form_on_any_input(rule: str, v: np.ndarray, w: Any) -> None:
    w = np.array(w[: len(v)])
    if rule == "rda" and cancelled(v, w):
        return
    expected = oracle.AGGREGATORS[rule](v, w)
    delta, geometry = combine(rule, v, w)
    assert oracle.ulps(delta, expected, np.maximum(size_of_terms(v, w).max(), np.abs(expected).max())) <= 4 * (
        1 / direction_length(v, w) if rule == "rda" else 1
    )
    assert geometry.squares == pytest.approx((v.astype(np.float64) ** 2).sum(1), rel=1e-5)
    assert np.sqrt(geometry.merged) == pytest.approx(
        np.linalg.norm(expected), rel=1e-4, abs=1e-5 * float(np.abs(v).max())
    )


def direction_length(v: np.ndarray, w: Any) -> float:
    """Length of the mean direction, by which RDA's rounding errors are divided."""
    v = v.astype(np.float64)
    norms = np.linalg.norm(v, axis=1)
    phi = np.divide(v, norms[:, None], out=np.zeros_like(v), where=norms[:, None] > 0)
    return np.linalg.norm((w[:, None] * phi).sum(0)) / w.sum()


def cancelled(v: np.ndarray, w: Any) -> bool:
    """Directions cancel, or so nearly that rounding decides whether RDA takes the direct average."""
    return direction_length(v, w) < 1e-4


@pytest.mark.parametrize("rule", RULES)
def test_order_of_learners_matters_in_rounding_only(rule: str) -> None:
    v, w = random_differences(5, 7, 700), np.arange(1.0, 8.0)
    order = np.random.default_rng(1).permutation(7)
    one, other = combine(rule, v, w)[0], combine(rule, v[order], w[order])[0]
    assert oracle.ulps(one, other, np.abs(one).max()) <= 4


@pytest.mark.parametrize("rule", RULES)
@given(power=st.integers(-30, 30), factor=st.floats(0.01, 100))
@settings(max_examples=30)
def test_common_scale(rule: str, power: int, factor: float) -> None:
    v, w = random_differences(6, 4, 600), np.array([1.0, 2.0, 3.0, 4.5])
    plain = combine(rule, v, w)[0]
    assert np.array_equal(combine(rule, v, w * 2.0**power)[0], plain)
    assert oracle.ulps(combine(rule, v, w * factor)[0], plain, np.abs(plain).max()) <= 4
    assert (
        oracle.ulps(
            combine(rule, v * np.float32(2.0**power), w)[0], plain * 2.0**power, np.abs(plain).max() * 2.0**power
        )
        <= 4
    )


@pytest.mark.parametrize("rule", RULES)
def test_translation(rule: str) -> None:
    v, w = random_differences(7, 5, 600), np.arange(1.0, 6.0)
    shift = random_differences(8, 1, 600)[0]
    moved, plain = combine(rule, v + shift, w)[0], combine(rule, v, w)[0]
    follows = oracle.ulps(moved, plain + shift, np.abs(v).max()) <= 16
    assert follows == PROMISES[rule].translation


@pytest.mark.parametrize("rule", RULES)
def test_rotation(rule: str) -> None:
    v, w = random_differences(9, 5, 40), np.arange(1.0, 6.0)
    rotation = np.linalg.qr(np.random.default_rng(10).standard_normal((40, 40)))[0]
    turned, plain = combine(rule, v @ rotation, w)[0], combine(rule, v, w)[0]
    follows = oracle.ulps(turned, plain @ rotation, np.abs(v).max()) <= 16
    assert follows == PROMISES[rule].rotation


@pytest.mark.parametrize("rule", RULES)
@given(v=DIFFERENCES, w=WEIGHTS)
def test_norm_of_the_result(rule: str, v: np.ndarray, w: Any) -> None:
    w = np.array(w[: len(v)])
    if rule == "rda" and cancelled(v, w):
        return
    norm = np.linalg.norm(combine(rule, v, w)[0].astype(np.float64))
    mean_norm = (w * np.linalg.norm(v.astype(np.float64), axis=1)).sum() / w.sum()
    if PROMISES[rule].norm == "exact":
        assert norm == pytest.approx(mean_norm, rel=2e-6)
    else:
        assert norm <= mean_norm * (1 + 1e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("learners", [3, 8])
@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
def test_breakdown_point(rule: str, learners: int, size: int) -> None:
    """As many outliers as it bears leave the result bounded; one more moves it as far as the outliers like."""
    assert AGGREGATORS[rule].breakdown == PROMISES[rule].breakdown
    borne = int(PROMISES[rule].breakdown * learners)
    v, w = random_differences(11, learners, 200), np.ones(learners)
    honest = np.linalg.norm(v, axis=1).max()
    v[:borne] = np.float32(size / np.sqrt(200))
    assert np.linalg.norm(combine(rule, v, w)[0]) <= 2 * honest
    v[borne] = np.float32(size / np.sqrt(200))
    assert np.linalg.norm(combine(rule, v, w)[0]) > size / learners / 2


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("learners", [1, 2, 5])
def test_zero_gives_zero(rule: str, learners: int) -> None:
    delta, geometry = combine(rule, np.zeros((learners, 700)), np.ones(learners))
    assert not delta.any()
    assert geometry.merged == geometry.average == 0.0


@pytest.mark.parametrize("rule", RULES)
def test_one_zero_difference_counts(rule: str) -> None:
    v = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    assert combine(rule, v, [1.0, 1.0])[0] == pytest.approx([1.5, 2.0])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", SIZES)
def test_type_and_shape_are_kept_and_repetition_gives_the_same_bits(rule: str, size: int) -> None:
    v, w = random_differences(12, 6, size), np.arange(1.0, 7.0)
    first, again = combine(rule, v, w)[0], combine(rule, v, w)[0]
    assert first.dtype == np.float32 and first.shape == (size,)
    assert first.tobytes() == again.tobytes()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("power", [-100, -75, 0, 60, 75, 100])
def test_any_range_of_lengths(rule: str, power: int) -> None:
    """Squares of these leave float32 on both sides."""
    v, w = random_differences(13, 5, 700), np.arange(1.0, 6.0)
    scaled, plain = combine(rule, v * np.float32(2.0**power), w), combine(rule, v, w)
    assert oracle.ulps(scaled[0] * 2.0**-power, plain[0], np.abs(plain[0]).max()) <= 4
    assert scaled[1].squares == pytest.approx(plain[1].squares * 4.0**power, rel=1e-6)
    assert scaled[1].dots == pytest.approx(plain[1].dots * 4.0**power, rel=1e-3)


@pytest.mark.parametrize(
    ("v", "w", "rda", "mean"),
    [
        ([[2, 0], [0, 2]], [1, 1], [1.41421, 1.41421], [1, 1]),
        ([[2, 0], [0, 2]], [3, 1], [1.89737, 0.63246], [1.5, 0.5]),
        ([[3, 4], [1, 0]], [1, 1], [2.68328, 1.34164], [2, 2]),
        ([[1, 2], [2, 4]], [1, 1], [1.5, 3.0], [1.5, 3.0]),
        ([[1, 2], [-1, -2]], [1, 1], [0, 0], [0, 0]),
    ],
)
def test_published_vectors(v: np.ndarray, w: Any, rda: list[float], mean: list[float]) -> None:
    assert combine("mean", v, w)[0] == pytest.approx(mean, abs=1e-5)
    assert combine("rda", v, w)[0] == pytest.approx(rda, abs=1e-5)


@pytest.mark.parametrize(("learners", "direct"), [(2, 0.708), (4, 0.497), (8, 0.354), (16, 0.250)])
def test_norms_of_random_unit_vectors(learners: int, direct: float) -> None:
    v = np.random.default_rng(learners).standard_normal((learners, 100_000))
    v /= np.linalg.norm(v, axis=1)[:, None]
    assert np.linalg.norm(combine("mean", v, np.ones(learners))[0]) == pytest.approx(direct, abs=0.004)
    assert np.linalg.norm(combine("rda", v, np.ones(learners))[0]) == pytest.approx(1.0, abs=1e-6)


def test_opposite_directions_take_the_direct_average() -> None:
    v = np.array([[1.0, 2.0, 0.0], [-3.0, -6.0, 0.0]], np.float32)
    assert combine("rda", v, [2.0, 2.0])[0] == pytest.approx([-1.0, -2.0, 0.0])


@pytest.mark.parametrize("rule", RULES)
def test_values_that_are_not_finite_do_not_hide(rule: str) -> None:
    v = random_differences(14, 3, 600)
    v[1, 5] = np.nan
    assert not np.isfinite(combine(rule, v, [1.0, 1.0, 1.0])[0]).all()
