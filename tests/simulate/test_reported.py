"""Faults that users of distributed training report, as small scenarios in virtual time; each names its report."""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np
import pytest

from tests.algorithms.merging_help import syncer
from tests.simulate.worlds import MS, SECOND, config_of, contributors, finished, of_kind, world_of
from workbench.algorithms.orders import settings_of_order
from workbench.config import ConfigError
from workbench.engine.syncer_status import StatusBook
from workbench.protocol.actions import Merge, StartStep
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind, Record, label_of, learner_of
from workbench.protocol.round_state import RoundState
from workbench.simulate.arithmetic import Ledgered, MergeNumbers, StepNumbers
from workbench.simulate.world import World

FOREVER_NS = 3600 * SECOND
SMALL: dict[str, Any] = {"period": 4, "fragments": 4, "overlap": 2, "rounds": 60}


def at_s(record: Record) -> float:
    return record.time_ns / SECOND


def losses(world: World) -> list[tuple[int, str]]:
    return [(learner_of(r.peer), r.reason) for r in of_kind(world, Kind.LEARNER_LOST) if r.reason != "ended"]


@pytest.mark.parametrize("kind", ["kill", "cut"])
def test_q1_a_joiner_that_dies_is_not_counted_for_ever(kind: str) -> None:
    """Learner 0 joins and dies (or falls silent) before 1 and 2 start: the quorum is {1, 2}."""
    late = [Fault("kill", 1, learner=m, for_ns=4 * SECOND) for m in (1, 2)]
    dead = Fault(kind, SECOND, learner=0, for_ns=0 if kind == "kill" else FOREVER_NS)
    world = finished(world_of(config_of({"start_s": 0.1}, learners=3, quorum=2, **SMALL), [*late, dead]))
    (lost,) = [r for r in of_kind(world, Kind.LEARNER_LOST) if learner_of(r.peer) == 0]
    joined = [r for r in of_kind(world, Kind.LEARNER_JOINED) if learner_of(r.peer) == 1]
    assert lost.reason == ("socket" if kind == "kill" else "heartbeat")
    assert at_s(lost) - 1.0 <= world.config.heartbeat_limit_s + 0.01
    assert world.records.index(lost) < world.records.index(joined[0]), "leave(0) before join(1)"
    assert all(learners == [1, 2] for learners in contributors(world))


def test_q3_quorum_of_what_is_said_at_once_with_who_is_missing() -> None:
    faults = [Fault("kill", 2 * SECOND, learner=m) for m in (1, 3)]
    world = world_of(config_of(learners=4, quorum=3, **SMALL), faults)
    world.run(until_ns=10 * SECOND)
    (lost,) = of_kind(world, Kind.QUORUM_LOST)
    assert (lost.value, lost.steps, lost.detail["missing"]) == (2.0, 3, ["L1", "L3"])
    assert 2.0 <= at_s(lost) <= 3.0
    assert not [r for r in of_kind(world, Kind.MERGED) if r.time_ns > lost.time_ns + SECOND]


@pytest.mark.parametrize("kind", ["kill", "cut"])
def test_q4_survivors_do_not_sit_out_a_time_out(kind: str) -> None:
    """One of three is killed, or cut off, after it was pulled and before it has sent."""
    fault = Fault(
        kind, 3 * SECOND, learner=0, for_ns=0 if kind == "kill" else FOREVER_NS, round_state=RoundState.PULLING
    )
    world = finished(world_of(config_of({"delay_s": 0.005}, learners=3, quorum=2, **SMALL), [fault]))
    (struck,) = of_kind(world, Kind.FAULT_INJECTED)
    after = next(r for r in of_kind(world, Kind.MERGED) if r.time_ns > struck.time_ns)
    cap_s = world.config.grace_cap_steps * world.config.virtual.step_s
    assert (after.time_ns - struck.time_ns) / SECOND <= cap_s + 0.5
    assert 0 not in contributors(world)[-1]


def test_q6_time_outs_that_cannot_work_together_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"pull_limit_min_s = 3.0 is above heartbeat_limit_s = 2.0"):
        config_of(pull_limit_min_s=3.0, heartbeat_limit_s=2.0)
    with pytest.raises(ConfigError, match=r"heartbeat_limit_s = 0.6 is less than two heartbeats \(heartbeat_s = 0.5\)"):
        config_of(heartbeat_limit_s=0.6)
    assert config_of(pull_limit_min_s=1.0, heartbeat_limit_s=2.0, heartbeat_s=0.4).pull_limit_min_s == 1.0


def test_q15_alone_with_a_quorum_of_one_trains() -> None:
    world = finished(world_of(config_of(learners=1, quorum=1, **SMALL)))
    assert contributors(world) == [[0]] * 60


def test_q15_alone_with_a_quorum_of_two_steps_on_and_says_so() -> None:
    absent = Fault("kill", 1, learner=1)
    world = world_of(config_of({"start_s": 0.1}, learners=2, quorum=2, start_limit_s=1.0, **SMALL), [absent])
    world.run(until_ns=20 * SECOND)
    (lost,) = of_kind(world, Kind.QUORUM_LOST)
    assert lost.detail["missing"] == ["L1"] and at_s(lost) < 2.0
    assert not of_kind(world, Kind.MERGED) and not world.failed and not world.finished
    steps = [at_s(r) for r in of_kind(world, Kind.STEP_ENDED)]
    assert len(steps) > 150 and max(steps) > 19.5 and max(np.diff(steps)) < 0.2, "inner steps go on"


@pytest.mark.parametrize("kind", ["kill", "cut"])
def test_q22_a_learner_that_drops_out_is_in_the_log_once_within_the_limit(kind: str) -> None:
    fault = Fault(kind, 2 * SECOND, learner=1, for_ns=0 if kind == "kill" else FOREVER_NS)
    world = finished(world_of(config_of(learners=3, **{**SMALL, "rounds": 100}), [fault]))
    assert losses(world) == [(1, "socket" if kind == "kill" else "heartbeat")]
    (lost,) = [r for r in of_kind(world, Kind.LEARNER_LOST) if r.reason != "ended"]
    assert 0 <= at_s(lost) - 2.0 <= world.config.heartbeat_limit_s + 0.01


def test_q25_a_frozen_train_loop_behind_a_beating_heart_is_stalled_and_left_out() -> None:
    world = world_of(config_of({"step_s": 0.5, "jitter": 0.05}, learners=3, quorum=2, **SMALL))
    world.run(until_ns=5 * SECOND)
    world.striker.strike(Fault("slow", 0, learner=1, factor=1e9))
    finished(world)
    stalled = of_kind(world, Kind.LEARNER_STALLED)
    assert [label_of(r.peer) for r in stalled] == ["L1"]
    assert stalled[0].value == pytest.approx(1.5, abs=0.1), "3 median steps"
    assert at_s(stalled[0]) < 5.0 + 0.5 + 1.5 + 0.2, "after the last step that it made"
    assert losses(world) == [], "it is alive"
    merged = [r for r in of_kind(world, Kind.MERGED) if r.time_ns > stalled[0].time_ns]
    assert len(merged) > 20 and all(r.detail["learners"] == [0, 2] for r in merged)


def test_q25_the_stalled_learner_is_left_out_of_k() -> None:
    world = world_of(config_of({"step_s": 0.5, "jitter": 0.0}, learners=2, quorum=2, **SMALL))
    world.run(until_ns=5 * SECOND)
    world.striker.strike(Fault("slow", 0, learner=1, factor=1e9))
    world.run(until_ns=30 * SECOND)
    (stalled,) = of_kind(world, Kind.LEARNER_STALLED)
    late = [r for r in of_kind(world, Kind.QUORUM_REACHED, Kind.MERGED) if r.time_ns > stalled.time_ns]
    assert late == [] and not of_kind(world, Kind.QUORUM_LOST), "it may come back: K is possible, and not reached"


class SomeTokens(Ledgered):
    """Steps of some learners count no tokens."""

    def __init__(self, fragments: int, silent: tuple[int, ...]) -> None:
        super().__init__(fragments)
        self.silent = silent

    def step(self, learner: int, order: StartStep) -> StepNumbers:
        """A step of the learner, with its tokens."""
        made = super().step(learner, order)
        return made._replace(tokens=0) if learner in self.silent else made


def test_a1_all_weights_zero_skip_the_round_and_change_nothing() -> None:
    world = world_of(config_of(learners=3, quorum=2, **SMALL), arithmetic=SomeTokens(4, (0, 1, 2)))
    world.run(until_ns=15 * SECOND)
    skipped = of_kind(world, Kind.ROUND_SKIPPED)
    assert len(skipped) > 50 and {r.reason for r in skipped} == {"weights_zero"}
    assert not of_kind(world, Kind.MERGED) and world.syncer.machine.state.versions == [0] * 4
    assert {r.version for r in of_kind(world, Kind.UPDATE_SENT)} == {0} and not world.failed


def test_a1_one_zero_among_three_has_no_weight() -> None:
    world = finished(world_of(config_of(learners=3, quorum=3, **SMALL), arithmetic=SomeTokens(4, (1,))))
    weights = [r.detail["weights"] for r in of_kind(world, Kind.MERGED)]
    assert len(weights) == 60 and all(w[1] == 0.0 and w[0] > 0 and w[2] > 0 for w in weights)


class ConstantLoss(Ledgered):
    """Every step has the loss 2."""

    def step(self, learner: int, order: StartStep) -> StepNumbers:
        """A step of the learner."""
        return super().step(learner, order)._replace(loss=2.0)


def test_a3_a_constant_loss_is_shown_whoever_leaves() -> None:
    """Four learners drop to two: nothing that is shown of the loss is divided by who is gone."""
    gone = [Fault("kill", 3 * SECOND, learner=m, for_ns=0) for m in (1, 3)]
    world = finished(world_of(config_of(learners=4, quorum=2, **SMALL), gone, arithmetic=ConstantLoss(4)))
    book = StatusBook([1] * 4)
    for record in world.records:
        book.note([record])
        shown = [one["loss"] for one in book.status(world.syncer.machine.state, world.now)["learners"].values()]
        assert {loss for loss in shown if loss is not None} <= {2.0}
    assert shown == [2.0] * 4
    assert contributors(world)[-1] == [0, 2]
    after = [r.value for r in of_kind(world, Kind.STEP_ENDED) if r.time_ns > 4 * SECOND]
    assert after and set(after) == {2.0}


class PushesOne(Ledgered):
    """Every contribution is one above Theta; merged by the syncer's own arithmetic."""

    def __init__(self, fragments: int, size: int = 8) -> None:
        super().__init__(fragments)
        self.theta = syncer([np.zeros(size, np.float32)] * fragments)
        self.moved: list[tuple[int, np.ndarray]] = []

    def merge(self, order: Merge) -> MergeNumbers:
        """Merge what is one above the current Theta."""
        p = order.fragment
        before = self.theta.theta(p).copy()
        pushed = [before + np.float32(1.0) for _ in order.learners]
        settings = settings_of_order(order.settings, 0)
        self.theta.merge(p, order.version, order.learners, pushed, order.weights, order.base_versions, settings)
        self.theta.commit(p, order.version)
        self.moved.append((len(order.learners), self.theta.theta(p) - before))
        return super().merge(order)


@pytest.mark.parametrize("merge", ["mean", "rda"])
def test_a5_the_divisor_is_the_contributors_not_the_world(merge: str) -> None:
    arithmetic = PushesOne(4)
    keys = {"learners": 4, "quorum": 2, "eligibility": "step", "grace": "none", "merge": merge}
    outer = {"outer": "sgd", "outer_rate": 1.0, "weights": "tokens"}
    world = finished(world_of(config_of({"jitter": 0.3}, **keys, **outer, **SMALL), arithmetic=arithmetic))
    assert {count for count, _ in arithmetic.moved} == {2}, "two of four"
    for count, moved in arithmetic.moved:
        np.testing.assert_allclose(moved, 1.0, rtol=1e-6, err_msg=f"{count} of 4 contributed")
    assert len(contributors(world)) == 60


@pytest.mark.parametrize("eligibility", ["fresh", "paced"])
def test_a4_steps_of_5_ms_keep_their_period(eligibility: str) -> None:
    """Target H = 24: the measured median of steps between two folds is at least 20."""
    virtual = {"step_s": 0.005, "delay_s": 0.0002, "merge_s": 0.0005}
    config = config_of(virtual, learners=4, period=24, fragments=24, overlap=2, rounds=240, eligibility=eligibility)
    world = finished(world_of(config))
    periods = [r.steps for r in of_kind(world, Kind.UPDATE_FOLDED) if r.base_version >= 1]
    assert len(periods) > 500 and median(periods) >= 20 and median(periods) <= 26
    assert world.now < 10 * SECOND and MS == 10**6


def test_a_link_that_is_slow_is_not_a_link_that_is_broken() -> None:
    """A fragment takes 5 s, longer than two heartbeat limits, and both learners are needed."""
    virtual = {"step_s": 2.0, "bandwidth": 800.0, "jitter": 0.05}
    config = config_of(virtual, learners=2, quorum=2, period=4, fragments=2, overlap=1, rounds=6)
    world = finished(world_of(config), limit_s=300.0)
    assert contributors(world) == [[0, 1]] * 6
    assert 1 <= [reason for _, reason in losses(world)].count("unanswered") <= 4, "then the limit is long enough"
