"""A learner's arithmetic: publication, capture, folds, moments, state transfer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workbench.algorithms.digest import digest
from workbench.algorithms.poisons import Poison
from workbench.config import RunConfig
from workbench.datasets import Text
from workbench.training import LearnerArithmetic, TrainingProgram, initial_weights


def fragment_like(config: RunConfig, p: int, value: float) -> np.ndarray:
    return np.full_like(initial_weights(config)[p], value)


def test_initial_weights_are_one_flat_array_per_fragment(config: RunConfig, program: TrainingProgram) -> None:
    weights = initial_weights(config)
    assert [flat.shape for flat in weights] == [(size,) for size in program.fragmentation.sizes]
    assert all(np.array_equal(a, b) for a, b in zip(weights, initial_weights(config), strict=True))
    other = initial_weights(replace(config, seed=1))
    assert not any(np.array_equal(a, b) for a, b in zip(weights, other, strict=True))


def test_load_and_weights_are_inverse(arithmetic: LearnerArithmetic, config: RunConfig) -> None:
    weights = initial_weights(config)
    assert all(np.array_equal(a, b) for a, b in zip(arithmetic.weights(), weights, strict=True))
    assert arithmetic.digest() == digest(np.concatenate(weights))


def test_loaded_arrays_may_be_overwritten_afterwards(arithmetic: LearnerArithmetic, config: RunConfig) -> None:
    weights = initial_weights(config)
    arithmetic.load(weights)
    before = arithmetic.digest()
    for flat in weights:
        flat[:] = 0
    assert arithmetic.digest() == before


def test_fragment_of_the_wrong_size_is_refused(arithmetic: LearnerArithmetic) -> None:
    with pytest.raises(ValueError, match=r"shape \(3,\) and type float32 came; expected"):
        arithmetic.fold(0, np.zeros(3, np.float32), 1, "overwrite", 0.0, None)


def test_step_says_what_it_did(arithmetic: LearnerArithmetic) -> None:
    result = arithmetic.step(1, 1)
    assert result.loss == pytest.approx(np.log(256), abs=0.5)
    assert (result.tokens, result.batch, result.accumulation) == (2 * 16, 2, 1)


def test_step_of_another_batch_size(arithmetic: LearnerArithmetic) -> None:
    result = arithmetic.step(1, 1, batch=3, accumulation=2)
    assert (result.tokens, result.batch, result.accumulation) == (2 * 3 * 16, 3, 2)


def test_learners_draw_different_batches(config: RunConfig, program: TrainingProgram) -> None:
    digests = set()
    for learner in (0, 1):
        arithmetic = LearnerArithmetic(config, learner, program, program.fragmentation)
        arithmetic.load(initial_weights(config))
        arithmetic.step(1, 1)
        digests.add(arithmetic.digest())
    assert len(digests) == 2


def test_rate_scale_and_inner_rate_scale_the_step(config: RunConfig, text: Text) -> None:
    plain = replace(config, inner=replace(config.inner, optimizer="sgd", clip=0.0, schedule="constant"))
    program = TrainingProgram(plain, text)

    def moved(rate: float, scale: float) -> np.ndarray:
        learner = LearnerArithmetic(plain, 0, program, program.fragmentation)
        learner.load(initial_weights(plain))
        learner.set_inner(rate)
        learner.step(1, 1, scale)
        return np.concatenate(learner.weights()) - np.concatenate(initial_weights(plain))

    assert np.array_equal(moved(0.5, 1.0), moved(1.0, 0.5))
    np.testing.assert_allclose(moved(1.0, 1.0), 2 * moved(0.5, 1.0), rtol=1e-3, atol=1e-6)
    assert not moved(1.0, 0.0).any()


def test_schedule_follows_the_global_step(arithmetic: LearnerArithmetic, config: RunConfig) -> None:
    before = arithmetic.digest()
    arithmetic.step(1, 0)
    assert arithmetic.digest() == before  # the rate at g = 0 is 0
    arithmetic.step(2, config.inner.warmup)
    assert arithmetic.digest() != before


def test_capture_sees_the_published_copy_and_not_a_newer_step(arithmetic: LearnerArithmetic) -> None:
    arithmetic.step(1, 1)
    arithmetic.publish()
    published = arithmetic.weights()[2]
    arithmetic.step(2, 2)
    captured = arithmetic.capture(2, 1, "f32")
    assert captured.digest == digest(published)
    assert captured.nbytes == published.nbytes
    assert captured.finite
    with pytest.raises(LookupError, match="published as of own step 1, not 2"):
        arithmetic.capture(2, 2, "f32")


def test_fold_renews_parameters_and_host_copy_of_its_fragment_only(
    arithmetic: LearnerArithmetic, config: RunConfig
) -> None:
    arithmetic.step(1, 1)
    arithmetic.publish()
    before, theta = arithmetic.weights(), fragment_like(config, 1, 0.25)
    arithmetic.fold(1, theta, 7, "overwrite", 0.0, None)
    after = arithmetic.weights()
    assert np.array_equal(after[1], theta)
    assert all(np.array_equal(after[p], before[p]) for p in (0, 2, 3))
    assert arithmetic.capture(1, 1, "f32").digest == digest(theta)
    assert arithmetic.base_versions == [-1, 7, -1, -1]


def test_folded_array_may_be_overwritten_afterwards(arithmetic: LearnerArithmetic, config: RunConfig) -> None:
    theta = fragment_like(config, 0, 0.5)
    arithmetic.fold(0, theta, 1, "overwrite", 0.0, None)
    arithmetic.step(1, 1)
    theta[:] = np.nan
    arithmetic.step(2, 2)
    arithmetic.publish()
    assert np.isfinite(arithmetic.capture(0, 2, "bf16").payload.view(np.uint8)).all()
    assert all(np.isfinite(flat).all() for flat in arithmetic.weights())


def test_blend_keeps_a_share_of_the_learners_own(arithmetic: LearnerArithmetic, config: RunConfig) -> None:
    own, theta = arithmetic.weights()[0], fragment_like(config, 0, 1.0)
    arithmetic.fold(0, theta, 1, "blend", 0.25, None)
    np.testing.assert_allclose(arithmetic.weights()[0], 0.25 * own + 0.75 * theta, rtol=1e-5, atol=1e-6)


def test_delay_corrected_fold_keeps_the_steps_since_the_captured_copy(
    arithmetic: LearnerArithmetic, config: RunConfig
) -> None:
    arithmetic.step(1, 5)
    arithmetic.publish()
    reference = arithmetic.weights()[3]
    arithmetic.capture(3, 1, "f32")
    arithmetic.step(2, 5)
    arithmetic.publish()
    now, theta = arithmetic.weights()[3], fragment_like(config, 3, 2.0)
    arithmetic.fold(3, theta, 1, "delay_corrected", 0.0, 1)
    np.testing.assert_allclose(arithmetic.weights()[3], theta + (now - reference), rtol=1e-5, atol=1e-6)
    assert np.abs(now - reference).max() > 1e-4


def test_delay_corrected_fold_without_contribution_counts_from_the_base(
    arithmetic: LearnerArithmetic, config: RunConfig
) -> None:
    base, theta = fragment_like(config, 0, 0.1), fragment_like(config, 0, 0.3)
    arithmetic.fold(0, base, 1, "overwrite", 0.0, None)
    arithmetic.step(1, 5)
    now = arithmetic.weights()[0]
    arithmetic.fold(0, theta, 2, "delay_corrected", 0.0, None)
    np.testing.assert_allclose(arithmetic.weights()[0], theta + (now - base), rtol=1e-5, atol=1e-6)


def test_delay_corrected_fold_without_base_overwrites(arithmetic: LearnerArithmetic, config: RunConfig) -> None:
    arithmetic.step(1, 5)
    theta = fragment_like(config, 0, 0.3)
    arithmetic.fold(0, theta, 1, "delay_corrected", 0.0, None)
    assert np.array_equal(arithmetic.weights()[0], theta)


def test_captured_copies_outlive_folds_until_released(arithmetic: LearnerArithmetic, config: RunConfig) -> None:
    theta = fragment_like(config, 0, 0.3)
    for n in (1, 2):
        arithmetic.step(n, n)
        arithmetic.publish()
        arithmetic.capture(0, n, "f32")
        arithmetic.fold(0, theta, n, "overwrite", 0.0, None)
    arithmetic.release(0, upto_n=1)
    arithmetic.fold(0, theta, 3, "delay_corrected", 0.0, 2)
    with pytest.raises(LookupError, match=r"after own step 1 is kept; kept are those of steps \[2\]"):
        arithmetic.fold(0, theta, 4, "delay_corrected", 0.0, 1)


def test_fault_acts_on_what_is_sent_and_not_on_the_learner(arithmetic: LearnerArithmetic) -> None:
    arithmetic.step(1, 1)
    arithmetic.publish()
    before = arithmetic.weights()[0]
    captured = arithmetic.capture(0, 1, "f32", poison=Poison("nan"))
    assert not captured.finite
    assert np.array_equal(arithmetic.weights()[0], before)
    assert arithmetic.capture(0, 1, "f32").digest == digest(before)


def test_moments_are_kept_across_folds_and_forgotten_on_request(
    arithmetic: LearnerArithmetic, config: RunConfig
) -> None:
    arithmetic.step(1, 1)
    before = [leaf.copy() for leaf in arithmetic.moments()]
    arithmetic.fold(0, fragment_like(config, 0, 0.3), 1, "overwrite", 0.0, None)
    assert all(np.array_equal(a, b) for a, b in zip(arithmetic.moments(), before, strict=True))
    assert any(leaf.any() for leaf in before)
    arithmetic.reset_moments()
    assert not any(leaf.any() for leaf in arithmetic.moments())


def test_state_of_a_peer_continues_like_the_peer(
    arithmetic: LearnerArithmetic, config: RunConfig, program: TrainingProgram
) -> None:
    arithmetic.step(1, 1)
    joiner = LearnerArithmetic(config, 0, program, program.fragmentation)
    joiner.load(initial_weights(config))
    for p, flat in enumerate(arithmetic.weights()):
        joiner.adopt(p, flat)
    joiner.load_moments(arithmetic.moments())
    assert joiner.step(2, 2) == arithmetic.step(2, 2)
    assert joiner.digest() == arithmetic.digest()


def test_moments_of_another_optimizer_are_refused(arithmetic: LearnerArithmetic) -> None:
    with pytest.raises(ValueError, match=r"moments with 1 arrays came; expected .* 'adamw'"):
        arithmetic.load_moments([np.zeros(3, np.float32)])


def test_memory_of_a_device_is_copied_and_that_of_the_host_is_not(
    config: RunConfig, program: TrainingProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for backend in ("cpu", "gpu"):
        monkeypatch.setattr("jax.default_backend", lambda backend=backend: backend)
        learner = LearnerArithmetic(config, 0, program, program.fragmentation)
        learner.load(initial_weights(config))
        learner.step(1, 1)
        learner.publish()
        learner.fold(1, fragment_like(config, 1, 0.5), 1, "overwrite", 0.0, None)
        made.append([learner.capture(p, 1, "f32").digest for p in range(config.fragments)])
    assert made[0] == made[1]


def test_step_calls_what_can_be_done_meanwhile_once(arithmetic: LearnerArithmetic) -> None:
    calls: list[int] = []
    arithmetic.step(1, 1, meanwhile=lambda: calls.append(1))
    assert calls == [1]


def test_update_that_was_prepared_folds_like_one_that_was_not(config: RunConfig, program: TrainingProgram) -> None:
    digests = set()
    for prepare in (False, True):
        learner = LearnerArithmetic(config, 0, program, program.fragmentation)
        learner.load(initial_weights(config))
        for p, rule in enumerate(("overwrite", "blend", "delay_corrected")):
            theta = fragment_like(config, p, 0.25)
            learner.fold(p, learner.incoming(p, theta) if prepare else theta, 1, rule, 0.5, None)
        theta[:] = 0.0
        digests.add(learner.digest())
    assert len(digests) == 1
