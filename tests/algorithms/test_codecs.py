from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.algorithms import oracle
from workbench.algorithms.codecs import CODECS, decode, encode
from workbench.config.validate import CHOICES

VALUES = hnp.arrays(np.float32, 30, elements=st.floats(width=32))
SMALL = hnp.arrays(
    np.float32,
    30,
    elements=st.one_of(st.just(0.0), st.floats(2**-20, 10, width=32), st.floats(-10, -(2**-20), width=32)),
)


def test_table_has_the_words_of_the_configuration() -> None:
    assert tuple(CODECS) == CHOICES["codec"]


@given(VALUES)
def test_f32_keeps_every_bit(values: Any) -> None:
    payload = encode(0, values, None, "f32")
    assert payload.tobytes() == values.tobytes()
    assert decode(0, payload.tobytes(), None, "f32").tobytes() == values.tobytes()


@given(SMALL)
def test_bf16_rounds_the_difference_to_nearest_even(difference: np.ndarray) -> None:
    payload = encode(0, -difference, np.zeros(30, np.float32), "bf16")
    coded = (payload.astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(coded, oracle.bf16(difference).astype(np.float32))
    assert np.all(np.abs(coded - difference) <= np.abs(difference) * 2.0**-8)


def test_bf16_keeps_parameters_exact_where_nothing_moved() -> None:
    base = np.random.default_rng(0).standard_normal(10_000).astype(np.float32)
    payload = encode(0, base, base, "bf16")
    assert not payload.any()
    assert decode(0, payload, base, "bf16").tobytes() == base.tobytes()


@pytest.mark.parametrize("drift", [1e-4, 1e-3, 1e-2])
def test_bf16_outer_gradients_are_right_to_a_fifth_of_a_percent(drift: float) -> None:
    """Parameters in bfloat16, which no codec may send, lose a hundred times more."""
    generator = np.random.default_rng(1)
    base = generator.uniform(0.5, 1.0, 100_000).astype(np.float32)
    theta = base - (drift * generator.standard_normal(100_000)).astype(np.float32)
    difference = base.astype(np.float64) - theta

    def error(values: Any) -> float:
        return np.linalg.norm(base.astype(np.float64) - values - difference) / np.linalg.norm(difference)

    sent = decode(0, encode(0, theta, base, "bf16"), base, "bf16")
    assert error(sent) < 0.0022
    assert error(oracle.bf16(theta)) > 20 * error(sent)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_stay_so(special: float) -> None:
    values, base = np.zeros(20, np.float32), np.ones(20, np.float32)
    values[3] = special
    for codec in CODECS:
        sent = decode(0, encode(0, values, base, codec), base, codec)
        assert list(np.flatnonzero(~np.isfinite(sent))) == [3]


@pytest.mark.parametrize("codec", sorted(CODECS))
@pytest.mark.parametrize("size", [1, 31, 1000])
def test_payloads_are_copies_of_the_stated_size_and_repeat(codec: str, size: int) -> None:
    values, base = np.random.default_rng(2).standard_normal((2, size)).astype(np.float32)
    values.flags.writeable = base.flags.writeable = False
    payload = encode(0, values, base, codec)
    assert payload.nbytes == CODECS[codec].nbytes(size)
    assert not np.shares_memory(payload, values)
    assert payload.tobytes() == encode(0, values, base, codec).tobytes()
    first = decode(0, payload, base, codec)
    for form in (payload.tobytes(), memoryview(payload.tobytes()), bytearray(payload.tobytes())):
        assert decode(0, form, base, codec).tobytes() == first.tobytes()


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_output_may_be_given(codec: str) -> None:
    values, base = np.random.default_rng(3).standard_normal((2, 40)).astype(np.float32)
    out, back = np.empty(40, CODECS[codec].dtype), np.empty(40, np.float32)
    assert CODECS[codec].encode(values, base, out) is out
    assert CODECS[codec].decode(out, base, back) is back
    with pytest.raises(ValueError, match=r"expected \(40,\)"):
        CODECS[codec].encode(values, base, np.empty(41, CODECS[codec].dtype))


@pytest.mark.parametrize("codec", sorted(CODECS))
@pytest.mark.parametrize("nbytes", [0, 3, 79, 81, 161])
def test_payloads_of_another_size_are_refused(codec: str, nbytes: int) -> None:
    with pytest.raises(ValueError, match=f"{nbytes} bytes came; expected {CODECS[codec].nbytes(40)}"):
        decode(0, bytes(nbytes), np.zeros(40, np.float32), codec)


def test_what_is_missing_is_named() -> None:
    values = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="codes the difference to a base"):
        encode(0, values, None, "bf16")
    with pytest.raises(ValueError, match="'int3' of fragment 5 is unknown; allowed: f32, bf16"):
        encode(5, values, None, "int3")
