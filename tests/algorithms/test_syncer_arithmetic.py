import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algorithms import oracle
from tests.algorithms.merging_help import NESTEROV, PLAIN, advance, random_differences, syncer, vectors
from workbench.algorithms.codecs import encode
from workbench.algorithms.digest import digest
from workbench.algorithms.fragment_slots import slots_needed
from workbench.algorithms.fragments import TensorSpec, fragment
from workbench.algorithms.syncer_arithmetic import MergeSettings, SyncerArithmetic


@pytest.mark.parametrize("rule", sorted(oracle.AGGREGATORS))
@pytest.mark.parametrize("size", [7, 700, 131_072 + 600])
def test_merge_against_oracle(rule: str, size: int) -> None:
    theta, *values = vectors(size, 5, size)
    weights = [3.0, 1.0, 2.0, 0.5]
    arithmetic = syncer([theta])
    b = np.zeros(size)
    for _ in range(2):
        before = arithmetic.theta(0).copy()
        v = before - np.stack(values)
        info = advance(arithmetic, 0, values, weights, MergeSettings(rule, "nesterov", 0.7, 0.9))
        delta = oracle.AGGREGATORS[rule](v, weights)
        expected, b = oracle.nesterov(before, delta, b, 0.7, 0.9)
        assert oracle.ulps(arithmetic.theta(0), expected, np.abs(v).max() + np.abs(before).max()) <= 8
        assert info.norm == pytest.approx(np.linalg.norm(delta), rel=1e-5)
        assert info.norms == pytest.approx(np.linalg.norm(v.astype(np.float64), axis=1), rel=1e-6)
        cosines = [oracle.cosine_to_others(v, weights, m) for m in range(4)]
        assert info.cosines == pytest.approx(cosines, abs=1e-5)
        assert info.digest == digest(arithmetic.theta(0))


def test_cosines_with_one_learner_opposite_learners_and_an_outlier() -> None:
    v = random_differences(1, 3, 900)
    v[2] = v[0] * 1000 + v[1]
    info = advance(syncer([np.zeros(900)]), 0, list(-v))
    assert info.cosines == pytest.approx([oracle.cosine_to_others(v, [1, 1, 1], m) for m in range(3)], abs=1e-5)
    assert advance(syncer([np.zeros(900)]), 0, [v[0]]).cosines == (0.0,)
    assert advance(syncer([np.zeros(900)]), 0, [v[0], -v[0]]).cosines == pytest.approx((-1.0, -1.0))


@given(order=st.permutations(range(4)))
@settings(max_examples=24)
def test_order_of_arrival_changes_no_bit(order: Any) -> None:
    theta, *values = vectors(2, 5, 600)
    rows = list(zip([3, 5, 6, 9], values, [1.0, 2.5, 3.0, 0.1], [0] * 4, strict=True))
    results = []
    for arrival in (rows, [rows[i] for i in order]):
        arithmetic = syncer([theta])
        learners, contributions, weights, bases = map(list, zip(*arrival, strict=True))
        results.append(arithmetic.merge(0, 1, learners, contributions, weights, bases, NESTEROV))
    assert results[0] == results[1]
    assert results[0].used == (3, 5, 6, 9)


def test_embeddings_take_the_direct_average_under_rda() -> None:
    specs = [
        TensorSpec(n, (s,), "float32", k, -1)
        for n, s, k in (("a", 300, "embedding"), ("b", 200, "matrix"), ("c", 40, "vector"))
    ]
    arithmetic = SyncerArithmetic(fragment(specs, 1, "balanced"), [np.zeros(540, np.float32)])
    v = random_differences(3, 3, 540)
    advance(arithmetic, 0, list(-v), settings=PLAIN._replace(merge="rda"))
    delta = -arithmetic.theta(0)
    for rule, part in ((oracle.mean, slice(0, 300)), (oracle.rda, slice(300, 500)), (oracle.rda, slice(500, 540))):
        assert oracle.ulps(delta[part], rule(v[:, part], np.ones(3)), np.abs(v).max()) <= 4


def test_divisor_is_the_weight_of_the_contributors() -> None:
    values = [np.full(5, -x, np.float32) for x in (3.0, 100.0, 6.0)]
    arithmetic = syncer([np.zeros(5)])
    info = advance(arithmetic, 0, values, [1.0, 0.0, 2.0], PLAIN)
    assert arithmetic.theta(0) == pytest.approx(-5.0)  # (3 + 2 * 6) / 3
    assert info.used == (0, 2) and len(info.norms) == len(info.cosines) == 2
    without = syncer([np.zeros(5)])
    assert without.merge(0, 1, [0, 2], [values[0], values[2]], [1.0, 2.0], [0, 0], PLAIN).digest == info.digest


def test_nothing_is_written_when_all_weights_are_zero() -> None:
    arithmetic = syncer([np.ones(5)])
    info = arithmetic.merge(0, 1, [0, 1], vectors(4, 2, 5), [0.0, 0.0], [0, 0], NESTEROV)
    assert info.used == () and info.digest == 0
    with pytest.raises(LookupError, match="was not merged"):
        arithmetic.commit(0, 1)
    assert arithmetic.version(0) == 0


def test_readers_of_the_current_slot_see_nothing_until_commit() -> None:
    arithmetic = syncer([np.ones(700)])
    seen = arithmetic.theta(0)
    before = digest(seen)
    info = arithmetic.merge(0, 1, [0], vectors(5, 1, 700), [1.0], [0], NESTEROV)
    assert digest(seen) == digest(arithmetic.encode_update(0)) == before
    assert arithmetic.version(0) == 0
    with pytest.raises(LookupError, match="version 1 of fragment 0 is not kept"):
        arithmetic.anchor(0, 1)
    arithmetic.commit(0, 1)
    assert digest(seen) == before  # the slot itself is written by the next merge only
    assert digest(arithmetic.theta(0)) == info.digest
    assert arithmetic.version(0) == 1
    with pytest.raises(ValueError, match="read-only"):
        arithmetic.theta(0)[0] = 1


def test_a_merge_may_be_repeated_before_commit() -> None:
    arithmetic = syncer([np.ones(700)])
    values = vectors(6, 2, 700)
    first = arithmetic.merge(0, 1, [0, 1], values, [1.0, 1.0], [0, 0], NESTEROV)
    other = arithmetic.merge(0, 1, [0], values[:1], [1.0], [0], NESTEROV)
    assert arithmetic.merge(0, 1, [0, 1], values, [1.0, 1.0], [0, 0], NESTEROV) == first != other


def test_momentum_is_kept_per_fragment() -> None:
    arithmetic = syncer([np.ones(40), np.ones(50)])
    for _ in range(5):
        advance(arithmetic, 0, vectors(7, 2, 40))
    assert arithmetic.outer_state(0).steps == 5 and arithmetic.outer_state(0).vectors.any()
    assert arithmetic.outer_state(1)[:2] == ("", 0)
    assert not arithmetic._slots[1].outer.any()
    advance(arithmetic, 1, vectors(8, 1, 50), settings=MergeSettings("mean", "nesterov", 1.0, 0.9))
    alone = syncer([np.ones(50)])
    advance(alone, 0, vectors(8, 1, 50), settings=MergeSettings("mean", "nesterov", 1.0, 0.9))
    assert digest(alone.theta(0)) == digest(arithmetic.theta(1))


def test_published_nesterov_vector() -> None:
    arithmetic = syncer([np.ones(1)])
    seen = []
    for _ in range(3):
        advance(
            arithmetic, 0, [arithmetic.theta(0) - np.float32(0.1)], settings=MergeSettings("mean", "nesterov", 0.7, 0.9)
        )
        seen.append(float(arithmetic.theta(0)[0]))
    assert seen == pytest.approx([0.867, 0.6773, 0.43657], abs=1e-6)


@pytest.mark.parametrize("how", ["reset", "other optimiser between"])
def test_fresh_outer_state(how: str) -> None:
    arithmetic = syncer([np.ones(40)])
    for seed in range(3):
        advance(arithmetic, 0, vectors(seed, 2, 40))
    if how == "reset":
        arithmetic.reset_outer(0)
    else:
        advance(arithmetic, 0, vectors(3, 2, 40), settings=NESTEROV._replace(outer="sgd"))
        assert arithmetic.outer_state(0).rule == "sgd"
    fresh = syncer([arithmetic.theta(0).copy()])
    assert advance(arithmetic, 0, vectors(9, 2, 40)) == advance(fresh, 0, vectors(9, 2, 40))
    assert arithmetic.outer_state(0).steps == 1


def test_outer_digest_follows_state_rule_and_steps() -> None:
    arithmetic = syncer([np.ones(40)])
    digests = [
        advance(arithmetic, 0, vectors(0, 1, 40), settings=NESTEROV._replace(outer=r)).outer_digest
        for r in ("sgd", "sgd", "nesterov")
    ]
    assert len(set(digests)) == 3


def test_base_anchor_takes_each_difference_from_its_own_base() -> None:
    arithmetic = syncer([np.zeros(6)], slot_count=slots_needed("base", 2))
    bases = [arithmetic.theta(0).copy()]
    for seed in range(4):
        advance(arithmetic, 0, vectors(seed, 1, 6), settings=PLAIN)
        bases.append(arithmetic.theta(0).copy())
    values = [bases[2] - np.float32(1), bases[4] - np.float32(3)]
    arithmetic.merge(0, 5, [0, 1], values, [1.0, 1.0], [2, 4], PLAIN._replace(anchor="base"))
    arithmetic.commit(0, 5)
    assert arithmetic.theta(0) == pytest.approx(bases[4] - 2, abs=1e-5)
    assert [digest(arithmetic.anchor(0, v)) for v in (3, 4)] == [digest(bases[v]) for v in (3, 4)]
    for too_old in (1, 2):  # version 2 lies in the slot that would be written
        with pytest.raises(LookupError, match=rf"version {too_old} of fragment 0 is not kept; kept are \[3, 4, 5\]"):
            arithmetic.merge(0, 6, [0], values[:1], [1.0], [too_old], PLAIN._replace(anchor="base"))


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_kept_versions_are_the_latest(kept: int) -> None:
    arithmetic = syncer([np.zeros(3)], slot_count=slots_needed("base", kept))
    for version in range(1, 9):
        advance(arithmetic, 0, vectors(version, 1, 3))
        for back in range(min(kept, version) + 1):
            assert arithmetic.anchor(0, version - back).shape == (3,)


@pytest.mark.parametrize("codec", ["f32", "bf16"])
def test_decode_uses_the_named_base(codec: str) -> None:
    arithmetic = syncer([np.ones(40)])
    local = (arithmetic.theta(0) - 0.01 * vectors(0, 1, 40)[0]).astype(np.float32)
    payload = encode(0, local, arithmetic.theta(0), codec)
    assert arithmetic.decode(0, payload, codec, 0) == pytest.approx(local, abs=2e-4)
    assert np.array_equal(arithmetic.decode(0, payload.tobytes(), codec, 0), local) == (codec == "f32")
    with pytest.raises(LookupError, match="not kept"):
        arithmetic.decode(0, payload, codec, 3)
    with pytest.raises(ValueError, match="bytes came; expected"):
        arithmetic.decode(0, payload[:-1], codec, 0)


def test_check_of_a_contribution() -> None:
    arithmetic = syncer([np.zeros(1000)])
    values = vectors(0, 1, 1000)[0]
    finite, digested, norm = arithmetic.check(0, values)
    assert finite and digested == digest(values)
    assert norm == pytest.approx(np.linalg.norm(values.astype(np.float64)), rel=1e-12)
    for bad in (np.nan, np.inf):
        broken = values.copy()
        broken[-1] = bad
        assert not arithmetic.check(0, broken).finite
    assert arithmetic.check(0, np.full(1000, 3e38, np.float32)).finite


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"new_version": 2}, "version 2 of fragment 0 cannot follow 0"),
        ({"learners": [1, 1]}, "hold one twice"),
        ({"weights": [1.0]}, "expected one length"),
        ({"weights": [1.0, -1.0]}, "finite and at least 0"),
        ({"weights": [1.0, np.nan]}, "finite and at least 0"),
        ({"contributions": [np.ones(4, np.float32), np.ones(5, np.float32)]}, r"expected float32 of shape \(5,\)"),
        ({"contributions": [np.ones(5), np.ones(5)]}, "came as float64"),
    ],
)
def test_requests_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    request: dict[str, Any] = {
        "p": 0,
        "new_version": 1,
        "learners": [0, 1],
        "contributions": vectors(0, 2, 5),
        "weights": [1.0, 1.0],
        "base_versions": [0, 0],
        "settings": NESTEROV,
    }
    with pytest.raises(ValueError, match=message):
        syncer([np.zeros(5)]).merge(**(request | change))


def three_merges(merge: str, outer: str) -> tuple[int, int]:
    """Digests after three merges from fixed values."""
    arithmetic = syncer([np.ones(700)])
    infos = [advance(arithmetic, 0, vectors(s, 3, 700), settings=MergeSettings(merge, outer)) for s in range(3)]
    return infos[-1].digest, infos[-1].outer_digest


def test_two_processes_give_the_same_bits() -> None:
    pairs = [("mean", "nesterov"), ("rda", "nesterov"), ("mean", "sgd"), ("rda", "sgd")]
    code = (
        "from tests.algorithms.test_syncer_arithmetic import three_merges\n"
        f"print([three_merges(*pair) for pair in {pairs}])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert run.stdout.strip() == str([three_merges(*pair) for pair in pairs])


def test_no_model_code_is_loaded() -> None:
    code = (
        "import sys, workbench.algorithms.syncer_arithmetic; "
        "sys.exit(any(name in sys.modules for name in ('jax', 'flax', 'optax')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
