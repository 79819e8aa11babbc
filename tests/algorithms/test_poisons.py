from __future__ import annotations

import numpy as np
import pytest

from workbench.algorithms.codecs import CODECS
from workbench.algorithms.digest import digest
from workbench.algorithms.flush import flush_mode, flush_to_zero
from workbench.algorithms.poisons import AFTER_CODEC, BEFORE_CODEC, Poison, poisoned, spoiled

SIZE = 1001
RNG = np.random.default_rng(3)
BASE = RNG.standard_normal(SIZE, np.float32)
UPDATE = 0.01 * RNG.standard_normal(SIZE, np.float32)
VALUES = BASE + UPDATE


@pytest.mark.parametrize("kind", [*BEFORE_CODEC, *AFTER_CODEC])
def test_a_poison_changes_what_goes_out_and_not_what_it_was_given(kind: str) -> None:
    given, base = VALUES.copy(), BASE.copy()
    poison = Poison(kind, 3.0, 5)
    values = poisoned(given, base, poison)
    payload = CODECS["f32"].encode(values, base)
    sent = spoiled(payload, poison)
    assert np.array_equal(given, VALUES) and np.array_equal(base, BASE)
    assert (values is given) == (kind in AFTER_CODEC)
    assert (sent is payload) == (kind in BEFORE_CODEC)
    assert sent.tobytes() != VALUES.tobytes()
    again = spoiled(CODECS["f32"].encode(poisoned(given, base, poison), base), poison)
    assert digest(again) == digest(sent)


@pytest.mark.parametrize(("kind", "is_it"), [("nan", np.isnan), ("inf", np.isinf)])
def test_one_value_is_no_number(kind: str, is_it: np.ufunc) -> None:
    bad = poisoned(VALUES, BASE, Poison(kind))
    assert is_it(bad).sum() == 1
    assert np.array_equal(bad[~is_it(bad)], VALUES[~is_it(bad)])


@pytest.mark.parametrize(("poison", "factor"), [(Poison("scale", 10.0), 10.0), (Poison("flip", 7.0), -1.0)])
def test_the_update_is_scaled_and_not_the_parameters(poison: Poison, factor: float) -> None:
    sent = poisoned(VALUES, BASE, poison) - BASE
    np.testing.assert_allclose(sent, factor * (VALUES - BASE), rtol=1e-4, atol=3e-7)


def test_a_random_update_has_the_norm_and_not_the_direction() -> None:
    sent = poisoned(VALUES, BASE, Poison("random", seed=4)) - BASE
    assert np.linalg.norm(sent) == pytest.approx(np.linalg.norm(UPDATE), rel=1e-3)
    assert abs(sent @ UPDATE) < 0.15 * np.linalg.norm(UPDATE) ** 2
    other = poisoned(VALUES, BASE, Poison("random", seed=5)) - BASE
    assert not np.array_equal(sent, other)


def test_no_update_stays_none() -> None:
    for kind in ("scale", "flip", "random"):
        assert np.array_equal(poisoned(BASE, BASE, Poison(kind, 3.0, 1)), BASE)


def test_without_a_base_the_values_are_the_update() -> None:
    np.testing.assert_array_equal(poisoned(VALUES, None, Poison("flip")), -VALUES)


def test_corrupt_bytes_differ_and_a_wrong_shape_lacks_an_element() -> None:
    for codec in ("f32", "bf16"):
        payload = CODECS[codec].encode(VALUES, BASE)
        bad = spoiled(payload, Poison("corrupt", seed=9))
        assert bad.shape == payload.shape and bad.dtype == payload.dtype
        assert 1 <= (bad.view(np.uint8) != payload.view(np.uint8)).sum() <= payload.nbytes // 1000 + 1
        short = spoiled(payload, Poison("shape"))
        assert np.array_equal(short, payload[:-1])


@pytest.mark.skipif(flush_mode() == "none", reason="denormals cannot be flushed on this machine")
def test_bits_do_not_depend_on_the_mode_of_the_thread() -> None:
    tiny = np.full(SIZE, 3e-39, np.float32)
    for poison in (Poison("scale", 0.5), Poison("flip"), Poison("random", seed=1)):
        plain = poisoned(tiny, np.zeros_like(tiny), poison)
        with flush_to_zero():
            flushed = poisoned(tiny, np.zeros_like(tiny), poison)
        assert digest(plain) == digest(flushed)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="'venom' is unknown; expected one of nan, inf"):
        poisoned(VALUES, BASE, Poison("venom"))
