"""Runs that are stopped in order, or lost with all their processes, at random times, and resumed."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest

from workbench.protocol.records import Kind, Record
from workbench.replay.machines import Rerun
from workbench.simulate import schedules
from workbench.simulate.durations import SECOND
from workbench.simulate.schedule import Loss, Schedule
from workbench.simulate.schedules import draw
from workbench.simulate.stops import STOPPED
from workbench.tape import Input

SEEDS = 300
ROUNDS = 14
FAULTS = 3

_encoded = msgspec.msgpack.Encoder().encode
_decoded = msgspec.msgpack.Decoder(list[Record]).decode


def short(seed: int) -> Schedule:
    """A short schedule with few faults, one stop or more, and perhaps a loss."""
    drawn = draw(seed, more=False, guards=False, roster=False, stops=False)
    rng = random.Random(f"short {seed}")
    length = ROUNDS / drawn.config["fragments"] * drawn.config["period"] * 0.1
    at = sorted(rng.uniform(0.05, max(length, 0.5)) for _ in range(rng.choice((1, 1, 2, 3))))
    losses = [Loss(int(s * SECOND), int(rng.choice((0.0, 0.2)) * SECOND), rng.random() < 0.4, True) for s in at]
    losses += [msgspec.structs.replace(loss, at_ns=int(loss.at_ns * rng.random())) for loss in drawn.losses[:1]]
    config = {**drawn.config, "rounds": ROUNDS}
    return msgspec.structs.replace(drawn, config=config, faults=drawn.faults[:FAULTS], losses=tuple(losses))


def test_every_invariant_holds_through_stops_and_resumes() -> None:
    ends: Counter[str] = Counter()
    starts: Counter[str] = Counter()
    failed = []
    for seed in range(SEEDS):
        world, _ = schedules.build(short(seed))
        try:
            world.run(until_ns=schedules.last_ns(short(seed)) + int(schedules.LIMIT_S * SECOND))
            if world.failed or world.finished != "rounds":
                failed.append((seed, world.failed or schedules.stuck(world)))
        except AssertionError as broken:
            failed.append((seed, str(broken)))
        ends.update(r.reason for r in world.records if r.kind == Kind.RUN_ENDED)
        starts.update(r.reason for r in world.records if r.kind == Kind.SYNCER_STARTED)
    print(dict(ends), dict(starts))
    assert failed == []
    assert ends["rounds"] == SEEDS == starts["new"]
    assert ends[STOPPED] > SEEDS // 2 and starts["resume"] >= ends[STOPPED]


@pytest.mark.parametrize("seed", range(0, SEEDS, 20))
def test_the_machine_decides_again_as_it_did(seed: int) -> None:
    inputs: list[Input] = []
    records: list[Record] = []

    def journal(taken: list[tuple[int, int, int, bytes]], made: list[Record]) -> None:
        inputs.extend(Input(*item) for item in taken)
        records.extend(_decoded(_encoded(made)))

    schedule = short(seed)
    world, _ = schedules.build(schedule, journal)
    world.run(until_ns=schedules.last_ns(schedule) + int(schedules.LIMIT_S * SECOND))
    assert world.finished == "rounds"
    report = Rerun(schedule.run_config(), records).run(inputs)
    assert report.equal, report.first_difference
    assert report.lives == sum(r.kind == Kind.SYNCER_STARTED for r in records)


def test_a_syncer_that_is_down_hears_of_the_stop_when_it_is_back() -> None:
    """The stop is asked for while it is killed, and again after one that was killed on the way to its end."""
    from workbench.protocol.faults import Fault

    plain = msgspec.structs.replace(
        short(0),
        config={**short(0).config, "recovery": "peer", "snapshot_every": 0, "snapshot_every_s": 0.0},
        faults=tuple(Fault("kill_syncer", int(at_s * SECOND), for_ns=SECOND // 2) for at_s in (0.5, 1.06)),
        changes=(), losses=(Loss(SECOND * 6 // 10, SECOND, False, True),), wanted_ns=(),
    )  # fmt: skip
    world, _ = schedules.build(plain)
    world.run(until_ns=60 * SECOND)
    reasons = [r.reason for r in world.records if r.kind == Kind.SYNCER_STARTED]
    assert world.finished == "rounds" and reasons[0] == "new" and reasons[-1] == "resume" and "restart" in reasons
    assert [r.reason for r in world.records if r.kind == Kind.RUN_ENDED] == [STOPPED, "rounds"]
