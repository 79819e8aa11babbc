"""When faults strike in virtual time, how often, and how they end."""

from __future__ import annotations

from typing import Any

from tests.simulate.worlds import MS, SECOND, config_of, finished, of_kind, world_of
from workbench.protocol.faults import FOREVER_NS, Fault
from workbench.protocol.records import Kind, Record, process_of
from workbench.simulate.world import World

PLAIN: dict[str, Any] = {"learners": 3, "rounds": 60, "period": 4, "fragments": 2}
CONFIG = config_of({"step_model": "fixed", "start_s": 0.2, "delay_s": 0.001}, **PLAIN)


def struck(world: World) -> list[Record]:
    return of_kind(world, Kind.FAULT_INJECTED)


def ends(world: World) -> list[tuple[str, str]]:
    return [(r.reason, r.detail["why"]) for r in of_kind(world, Kind.FAULT_ENDED)]


def test_a_fault_waits_for_its_merge_or_its_round() -> None:
    faults = [Fault("slow", 0, 0, SECOND, 2.0, at_merge=10), Fault("cut", 0, 1, SECOND, at_round=30)]
    world = finished(world_of(CONFIG, faults))
    slow, cut = struck(world)
    merged = [r.time_ns for r in of_kind(world, Kind.MERGE_COMMITTED)]
    assert (slow.reason, cut.reason) == ("slow", "cut")
    assert merged[9] <= slow.time_ns <= merged[9] + MS
    opened = next(r for r in of_kind(world, Kind.ROUND_OPENED) if r.round >= 30)
    assert opened.time_ns <= cut.time_ns <= opened.time_ns + MS


def test_a_fault_comes_again_as_often_as_it_says() -> None:
    repeated = Fault("lose_down", SECOND, 0, count=2, every_ns=SECOND // 2, times=3)
    world = finished(world_of(CONFIG, [repeated]))
    assert [r.time_ns for r in struck(world)] == [SECOND, SECOND * 3 // 2, 2 * SECOND]
    assert [r.detail["fault"] for r in struck(world)] == [1, 2, 3]
    assert ends(world) == [("lose_down", "used_up")] * 3


def test_without_a_number_of_times_it_comes_as_long_as_the_run_goes_on() -> None:
    world = finished(world_of(CONFIG, [Fault("stall", SECOND, 0, 10 * MS, every_ns=SECOND, times=0)]))
    assert len(struck(world)) == world.now // SECOND
    assert ends(world) == [("stall", "over")] * len(struck(world))


def test_every_end_names_its_fault_and_how_long_it_acted() -> None:
    world = finished(world_of(CONFIG, [Fault("cut_up", SECOND, 1, SECOND), Fault("delay", SECOND, 1, 2 * SECOND)]))
    found = {r.detail["fault"]: r for r in struck(world)}
    for end in of_kind(world, Kind.FAULT_ENDED):
        began = found[end.detail["fault"]]
        assert (end.reason, end.peer, end.detail["began_ns"]) == (began.reason, began.peer, began.time_ns)
        assert end.time_ns == began.detail["until_ns"] and end.value == began.value
    assert sorted(ends(world)) == [("cut_up", "over"), ("delay", "over")]


def test_healing_ends_what_lasts_and_nothing_of_others() -> None:
    world = world_of(CONFIG)
    world.run(until_ns=SECOND)
    for kind, learner in (("cut", 1), ("slow", 1), ("cut", 2)):
        assert world.striker.strike(Fault(kind, 0, learner, factor=2.0))
    world.run(until_ns=2 * SECOND)
    assert world.striker.heal(1) == 2
    assert world.striker.heal(1) == 0
    finished(world)
    assert ends(world) == [("cut", "healed"), ("slow", "healed")]
    assert all(r.detail["until_ns"] == FOREVER_NS for r in struck(world))
    assert world.network.acting.is_cut(2) and not world.network.acting.is_cut(1)


def test_a_slow_down_goes_with_the_learner_and_not_with_its_process() -> None:
    faults = [Fault("slow", SECOND, 0, 4 * SECOND, 2.0), Fault("kill", 2 * SECOND, 0, SECOND // 2)]
    world = finished(world_of(CONFIG, faults))
    steps = [r for r in of_kind(world, Kind.STEP_ENDED) if r.process == process_of(0) and r.detail["injected_ns"]]
    assert {r.incarnation for r in steps} == {1, 2}
    assert all(r.detail["start_ns"] <= 5 * SECOND for r in steps)


def test_a_process_that_ends_itself_is_started_again() -> None:
    world = finished(world_of(CONFIG, [Fault("exit", 1510 * MS, 1, SECOND)]))
    (end,) = [r for r in of_kind(world, Kind.PROCESS_ENDED) if (r.peer, r.value) == (process_of(1), 1.0)]
    assert end.reason == "exit 1"
    starts = [r.time_ns for r in of_kind(world, Kind.PROCESS_STARTED) if r.peer == process_of(1)]
    assert starts == [0, 2510 * MS]


def test_a_late_learner_is_waited_for_up_to_the_limit() -> None:
    late = Fault("late", 0, 1, 3 * SECOND)
    world = finished(world_of(CONFIG.set(start_limit_s=1.0), [late]))
    (began,) = of_kind(world, Kind.ROUNDS_BEGAN)
    assert (began.reason, began.value) == ("start_limit", 2.0)
    starts = [r.time_ns for r in of_kind(world, Kind.PROCESS_STARTED) if r.peer == process_of(1)]
    assert starts == [3 * SECOND]
    assert any(1 in r.detail["learners"] for r in of_kind(world, Kind.MERGED))


def test_wrong_shapes_and_corrupt_bytes_are_dropped_and_scaled_updates_are_not() -> None:
    faults = [Fault(kind, (1 + i) * SECOND, 1, count=2) for i, kind in enumerate(("shape", "corrupt", "scale", "inf"))]
    world = finished(world_of(CONFIG, faults))
    applied = {(r.detail["round"], r.reason) for r in of_kind(world, Kind.FAULT_APPLIED)}
    dropped = {r.round: r.reason for r in of_kind(world, Kind.FRAGMENT_DROPPED)}
    assert {kind: dropped.get(t) for t, kind in applied} == {
        "shape": "shape", "corrupt": "shape", "inf": "nonfinite", "scale": None
    }  # fmt: skip
    assert len(applied) == 8
    assert ends(world) == [(kind, "used_up") for kind in ("shape", "corrupt", "scale", "inf")]
