"""Settings that are changed while a run goes on: who acknowledges them, and from which round or step they act."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulate.worlds import MS, SECOND, config_of, finished, of_kind, world_of
from workbench.protocol import actions as act
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind, Record, learner_of
from workbench.simulate.world import World

AT_NS = 2 * SECOND
PLAIN = {"learners": 3, "rounds": 40, "period": 6, "fragments": 6, "overlap": 2}


def changed(
    values: dict[str, Any], *faults: Fault, at_ns: int = AT_NS, slow: tuple[float, ...] = (), **keys: Any
) -> World:
    """A world in which somebody will ask for other settings, before its first event."""
    world = world_of(config_of({"step_model": "fixed", "slow": slow}, **{**PLAIN, **keys}), faults)
    world.at(at_ns, world.ask, (values, "somebody"))
    return world


def acknowledged(world: World) -> Record:
    """The one acknowledgement."""
    (found,) = of_kind(world, Kind.SETTING_CHANGED)
    assert not of_kind(world, Kind.SETTING_REFUSED)
    assert found.setting == 1 and found.detail["who"] == "somebody" and found.time_ns == AT_NS
    return found


def test_arithmetic_acts_on_the_rounds_opened_later() -> None:
    world = finished(changed({"merge": "mean", "outer_rate": 0.25}))
    found = acknowledged(world)
    assert found.detail["values"] == {"merge": "mean", "outer_rate": 0.25}
    at = world.records.index(found)
    before = {r.round for r in world.records[:at] if r.kind == Kind.ROUND_OPENED}
    assert found.round == max(before) + 1  # the first round that it acts on
    merged = of_kind(world, Kind.MERGED)
    for record in merged:
        old = record.round in before
        assert (record.reason, record.detail["outer_rate"]) == (("rda", 0.5) if old else ("mean", 0.25))
        assert record.setting == (0 if old else 1)
    late = [r.round for r in merged if r.round in before and r.time_ns > AT_NS]
    assert len(late) == 2  # tau rounds were in flight and kept their own


def test_another_outer_optimiser_starts_fresh_once_per_fragment() -> None:
    world = finished(changed({"outer": "sgd"}))
    first = acknowledged(world).round
    fresh = [r.round for r in of_kind(world, Kind.MERGED) if r.detail["fresh_outer"]]
    assert fresh == list(range(first, first + 6))
    assert {r.detail["outer"] for r in of_kind(world, Kind.MERGED) if r.round >= first} == {"sgd"}


def test_a_smaller_quorum_acts_at_once_on_the_round_that_waits() -> None:
    dead = Fault("kill", SECOND, learner=2)  # never again
    waiting = changed({}, dead, quorum=3, at_ns=10**15)
    waiting.run(until_ns=20 * SECOND)
    stuck_since = of_kind(waiting, Kind.MERGED)[-1].time_ns
    assert stuck_since < 1.3 * SECOND and of_kind(waiting, Kind.QUORUM_LOST)[0].detail["missing"] == ["L2"]
    world = finished(changed({"quorum": 2}, dead, quorum=3))
    assert acknowledged(world).setting == 1
    next_merge = next(r for r in of_kind(world, Kind.MERGED) if r.time_ns > AT_NS)
    assert next_merge.time_ns == AT_NS + int(4.0 * MS)  # PULL, FRAGMENT, merge
    assert next_merge.setting == 0  # opened before: its arithmetic is of revision 0
    assert {tuple(r.detail["learners"]) for r in of_kind(world, Kind.MERGED) if r.time_ns > AT_NS} == {(0, 1)}
    assert of_kind(world, Kind.QUORUM_REGAINED)[0].time_ns == AT_NS


def test_a_larger_quorum_acts_at_once_on_the_round_that_waits() -> None:
    world = finished(changed({"quorum": 3}, slow=(1.0, 1.0, 3.0), grace="none"))
    after = [r for r in of_kind(world, Kind.MERGED) if r.time_ns > AT_NS]
    assert len(after) > 10 and all(r.detail["learners"] == [0, 1, 2] for r in after)
    assert after[0].setting == 0 and any(len(r.detail["learners"]) < 3 for r in of_kind(world, Kind.MERGED))


@pytest.mark.parametrize(
    ("values", "window_s"), [({"grace": "none"}, 0.0), ({"grace_s": 0.85}, 0.85), ({"grace_s": 0.1}, 0.1)], ids=str
)
def test_grace_acts_at_once_on_the_rounds_that_wait(values: dict[str, Any], window_s: float) -> None:
    """L2 stands still with work on both fragments; a window of 9 s waits for it.  The new one runs from the quorum."""
    stall = Fault("stall", 1130 * MS, learner=2, for_ns=1900 * MS)
    world = changed(values, stall, grace="fixed", grace_s=9.0, heartbeat_limit_s=5.0, rounds=8)
    world.run(until_ns=AT_NS - 1)
    oldest, other = (round_ for _, round_ in sorted(world.syncer.machine.state.rounds.items()))
    assert 0 < oldest.quorum_at < other.quorum_at < AT_NS - 500 * MS
    finished(world)
    assert acknowledged(world).time_ns == AT_NS
    (ended,) = [r for r in of_kind(world, Kind.GRACE_ENDED) if r.round == oldest.t]
    assert ended.reason == "over" and ended.detail["admitted"] == [0, 1]
    assert ended.time_ns == max(AT_NS, oldest.quorum_at + int(window_s * SECOND))


def test_learner_settings_act_at_each_learners_next_boundary() -> None:
    """L1 stands still when the change comes, and takes it at the end of its step, later than the others."""
    world = finished(changed({"fold": "blend", "fold_alpha": 0.25}, Fault("stall", 1950 * MS, 1, 400 * MS)))
    acknowledged(world)
    applied = {learner_of(r.process): r for r in of_kind(world, Kind.SETTING_APPLIED) if r.setting == 1}
    assert sorted(applied) == [0, 1, 2]
    for learner, taken in applied.items():
        ends = [r for r in of_kind(world, Kind.STEP_ENDED) if learner_of(r.process) == learner]
        boundary = next(r for r in ends if r.time_ns > AT_NS)
        assert (taken.time_ns, taken.step) == (boundary.time_ns, boundary.step)
        folds = [r for r in of_kind(world, Kind.UPDATE_FOLDED) if learner_of(r.process) == learner]
        folds = [r for r in folds if r.base_version >= 0]  # the first of a process is always whole
        assert {(r.reason, r.value) for r in folds if r.seq < taken.seq} == {("overwrite", 0.0)}
        assert {(r.reason, r.value) for r in folds if r.seq > taken.seq} == {("blend", 0.25)}
    assert applied[1].time_ns > AT_NS + 300 * MS > applied[0].time_ns == applied[2].time_ns


def test_a_lead_acts_at_each_learners_next_boundary() -> None:
    world = finished(changed({"lead": 0}, slow=(1.0, 1.0, 1.5), quorum=3))
    steps = [(r.detail["start_ns"] > AT_NS, r.detail["waited_ns"] > 0) for r in of_kind(world, Kind.STEP_ENDED)]
    assert (True, True) in steps and (False, False) in steps and (False, True) not in steps


class Orders:
    """Steps as they are ordered: (time, scale of the learning rate, batch)."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, float, int]] = []

    def on_input(self, world: World, process: int, event: Any) -> None:
        """Not of interest."""

    def on_action(self, world: World, process: int, action: act.Action) -> None:
        """Keep what a step is ordered with."""
        if isinstance(action, act.StartStep):
            self.steps.append((world.now, action.rate_scale, action.batch))

    def after_event(self, world: World) -> None:
        """Not of interest."""


def test_inner_rate_and_local_work_act_on_the_next_step() -> None:
    world = changed({"inner.rate": 1.5e-3, "inner.batch": 3})
    world.observer = orders = Orders()
    finished(world)
    assert {(scale, batch) for at, scale, batch in orders.steps if at <= AT_NS} == {(1.0, 8)}
    assert {(scale, batch) for at, scale, batch in orders.steps if at > AT_NS + 100 * MS} == {(0.5, 3)}


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"period": 3}, "period cannot change while a run goes on; live settings: quorum"),
        ({"seed": 1}, "seed cannot change while a run goes on"),
        ({"model.width": 64}, "model.width cannot change while a run goes on"),
        ({"nonsense": 1}, "unknown key 'nonsense'; live settings: quorum"),
        ({"quorum": 4}, "quorum = 4 with 3 learners; allowed: 1 to 3"),
        ({"quorum": 0}, "quorum = 0 with 3 learners; allowed: 1 to 3"),
        ({"quorum": 1.5}, "quorum = 1.5 is not a whole number"),
        ({"quorum": True}, "quorum = True is not a whole number"),
        ({"merge": "sum"}, "merge = 'sum' is unknown; allowed: "),
        ({"outer_rate": float("nan")}, "outer_rate = nan is out of range"),
        ({"outer_rate": "fast"}, "outer_rate = 'fast' is not a number"),
        ({"guard_nonfinite": "maybe"}, "guard_nonfinite = 'maybe' is not true or false"),
        ({"lead": -1}, "lead = -1 is not possible; allowed: none, or a whole number of steps from 0"),
        ({"quorum": 5000}, "quorum = 5000 with 3 learners; allowed: 1 to 3"),
        ({"lead": 0.5}, "lead = 0.5 is not a whole number"),
        ({"merge": "mean", "period": 3}, "period cannot change"),
    ],
    ids=str,
)
def test_what_cannot_change_is_refused_whole_and_recorded(values: dict[str, Any], complaint: str) -> None:
    world = finished(changed(values))
    (refused,) = of_kind(world, Kind.SETTING_REFUSED)
    assert complaint in refused.reason and refused.detail["who"] == "somebody" and refused.time_ns == AT_NS
    assert repr(refused.detail["values"]) == repr(values)
    assert not of_kind(world, Kind.SETTING_CHANGED)
    assert {(r.reason, r.setting) for r in of_kind(world, Kind.MERGED)} == {("rda", 0)}


def test_of_two_controllers_the_syncers_order_counts() -> None:
    world = changed({"merge": "mean"})
    world.at(AT_NS, world.ask, ({"merge": "rda", "weights": "uniform"}, "another"))
    finished(world)
    first, second = of_kind(world, Kind.SETTING_CHANGED)
    assert [(r.setting, r.detail["who"]) for r in (first, second)] == [(1, "somebody"), (2, "another")]
    assert {(r.reason, r.setting) for r in of_kind(world, Kind.MERGED) if r.round >= second.round} == {("rda", 2)}


@pytest.mark.parametrize("killed_ns", [AT_NS + MS, AT_NS + SECOND])
def test_a_change_outlives_the_syncer_that_took_it(killed_ns: int) -> None:
    kill = Fault("kill_syncer", killed_ns, for_ns=300 * MS)
    world = finished(changed({"merge": "mean", "quorum": 2, "fold": "blend"}, kill))
    first = acknowledged(world).round
    assert {(r.reason, r.setting) for r in of_kind(world, Kind.MERGED) if r.round >= first} == {("mean", 1)}
    assert {(r.reason, r.setting) for r in of_kind(world, Kind.MERGED) if r.round < first} == {("rda", 0)}
    state = world.syncer.machine.state
    assert (state.book.revision, state.book.policy.quorum, state.book.learner.fold) == (1, 2, "blend")
    assert {p.machine.state.settings.fold for p in world.learners.values()} == {"blend"}


def test_a_dead_syncer_hears_nothing() -> None:
    world = finished(changed({"merge": "mean"}, Fault("kill_syncer", AT_NS - 100 * MS, for_ns=300 * MS)))
    assert not of_kind(world, Kind.SETTING_CHANGED) and {r.reason for r in of_kind(world, Kind.MERGED)} == {"rda"}


def test_a_learner_that_joins_later_begins_with_the_settings_of_now() -> None:
    kill = Fault("kill", AT_NS - 200 * MS, learner=1, for_ns=SECOND)
    world = changed({"fold": "blend", "fold_alpha": 0.5}, kill, rounds=60)
    finished(world)
    folds = [r for r in of_kind(world, Kind.UPDATE_FOLDED) if learner_of(r.process) == 1 and r.base_version >= 0]
    assert {r.reason for r in folds if r.time_ns > AT_NS + SECOND} == {"blend"}
