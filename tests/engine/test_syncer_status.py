"""What a syncer tells of a run that was resumed, until its learners are there."""

from __future__ import annotations

from tests.simulate.worlds import SECOND, config_of, world_of
from workbench.analysis.arrays import incidents
from workbench.analysis.from_records import tables
from workbench.engine.syncer_status import StatusBook
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind
from workbench.simulate.outages import lose_everything, resume_run
from workbench.simulate.world import World


def told(world: World) -> tuple[bool, bool, float | None]:
    """(waits for learners to start, quorum lost, since when [s]) as the status says it."""
    book = StatusBook([1] * world.config.fragments)
    book.note(world.records)
    status = book.status(world.syncer.machine.state, world.now)
    return status["gathers"], status["quorum_lost"], status["quorum_lost_since_s"]


def test_learners_that_start_after_a_resume_are_no_lost_quorum() -> None:
    config = config_of({"start_s": 3.0}, learners=3, quorum=2, rounds=200, start_limit_s=5.0)
    world = world_of(config)
    world.run(until_ns=8 * SECOND)
    assert told(world) == (False, False, None)
    lose_everything(world)
    resume_run(world)
    world.run(until_ns=world.now + 2 * SECOND)
    assert told(world) == (True, False, None)
    world.run(until_ns=world.now + 3 * SECOND)
    assert told(world) == (False, False, None)


def test_learners_that_start_one_after_the_other_are_awaited() -> None:
    """By hand that takes as long as it takes: what never was there is not lost; but what goes later is."""
    late = Fault("late", 0, 1, 9 * SECOND)
    world = world_of(config_of({}, learners=2, quorum=2, rounds=200, start_limit_s=60.0), [late])
    world.run(until_ns=6 * SECOND)
    assert any(record.kind == Kind.QUORUM_LOST for record in world.records)
    assert told(world) == (True, False, None)
    rows = incidents.quorums_lost(tables(world.records))
    assert [row["awaited"] for row in rows] == [True]
    world.run(until_ns=15 * SECOND)
    assert told(world) == (False, False, None) and world.syncer.machine.state.began


def test_learners_that_do_not_come_are_a_lost_quorum() -> None:
    world = world_of(config_of({"start_s": 9.0}, learners=3, quorum=2, rounds=200, start_limit_s=5.0))
    world.run(until_ns=12 * SECOND)
    lose_everything(world)
    resume_run(world)
    began = world.now / SECOND
    world.run(until_ns=world.now + 6 * SECOND)
    gathers, lost, since = told(world)
    assert (gathers, lost) == (False, True)
    assert since is not None and began <= since < began + 1.0
