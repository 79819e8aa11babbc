"""Denormals are zero in every kernel, and only there."""

import numpy as np
import pytest

from tests.algorithms.merging_help import combine, syncer
from workbench.algorithms.aggregators import AGGREGATORS
from workbench.algorithms.codecs import CODECS
from workbench.algorithms.flush import flush_mode, flush_to_zero
from workbench.algorithms.folds import FOLDS
from workbench.algorithms.syncer_arithmetic import MergeSettings

TINY = np.float32(1e-40)
NORMAL = np.float32(1.5e-38)  # smallest normal: 1.18e-38


def test_mode_is_set_inside_and_put_back_outside() -> None:
    assert flush_mode() == "ftz"
    tiny = np.full(8, TINY)
    with flush_to_zero():
        assert not (tiny * np.float32(1)).any()
        assert not (np.full(8, NORMAL) * np.float32(0.5)).any()
    assert (tiny * np.float32(1)).all()


def test_mode_is_put_back_after_an_error_and_when_nested() -> None:
    with pytest.raises(KeyError), flush_to_zero():
        raise KeyError
    assert (np.full(8, TINY) * np.float32(1)).all()
    with flush_to_zero():
        with flush_to_zero():
            pass
        assert not (np.full(8, TINY) * np.float32(1)).any()


@pytest.mark.parametrize("rule", sorted(AGGREGATORS))
@pytest.mark.parametrize("size", [5, 700])
def test_denormal_differences_merge_to_zero(rule: str, size: int) -> None:
    delta, geometry = combine(rule, np.full((3, size), TINY), [1.0, 2.0, 3.0])
    assert not delta.view(np.uint32).any()
    assert not geometry.squares.any()


@pytest.mark.parametrize("outer", ["nesterov", "sgd"])
def test_merge_gives_the_same_bits_whatever_the_caller_set(outer: str) -> None:
    generator = np.random.default_rng(0)
    theta = (generator.standard_normal(600) * 1e-38).astype(np.float32)
    values = [(generator.standard_normal(600) * 2e-38).astype(np.float32) for _ in range(4)]
    infos = []
    for inside in (False, True):
        arithmetic = syncer([theta])
        arguments = (0, 1, range(4), values, [1.0] * 4, [0] * 4, MergeSettings("mean", outer))
        if inside:
            with flush_to_zero():
                infos.append(arithmetic.merge(*arguments))
        else:
            infos.append(arithmetic.merge(*arguments))
        arithmetic.commit(0, 1)
        bits = np.abs(arithmetic.theta(0).view(np.int32)) & 0x7FFFFFFF
        assert not ((bits > 0) & (bits < 0x00800000)).any()
    assert infos[0] == infos[1]


def test_folds_flush() -> None:
    local, update, reference = (np.full(9, x, np.float32) for x in (TINY, 0.0, 0.0))
    assert not FOLDS["delay_corrected"](local, update, reference).any()
    assert not FOLDS["blend"](local, update, alpha=0.5).any()


def test_lossless_codec_keeps_denormals_and_differences_flush() -> None:
    values, base = np.full(9, TINY), np.zeros(9, np.float32)
    assert CODECS["f32"].decode(CODECS["f32"].encode(values, None), None).tobytes() == values.tobytes()
    assert not CODECS["bf16"].encode(values, base).any()
