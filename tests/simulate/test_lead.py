"""How far apart learners may be with a lead, and what the lock-step looks like."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.simulate.worlds import MS, SECOND, config_of, finished, of_kind, world_of
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind, learner_of
from workbench.simulate.world import World


def most_apart(world: World) -> int:
    """Largest difference between two learners' own steps, at any time from which all have made one."""
    n: dict[int, int] = {}
    worst = 0
    for record in sorted(of_kind(world, Kind.STEP_ENDED), key=lambda r: (r.time_ns, r.process)):
        n[record.process] = record.step
        if len(n) == world.config.learners:
            worst = max(worst, max(n.values()) - min(n.values()))
    return worst


def steps(world: World, last: int) -> list[tuple[float, str, int, float]]:
    """(start [ms], learner, own step, waited before it [ms]) of the first steps, in order of time."""
    found = [
        (r.detail["start_ns"] / MS, f"L{learner_of(r.process)}", r.step, r.detail["waited_ns"] / MS)
        for r in of_kind(world, Kind.STEP_ENDED)
        if r.step <= last
    ]
    return sorted(found)


def two_learners(lead: int, rounds: int) -> World:
    """Steps of 100 and 150 ms, messages of 1 ms, merges of 2 ms, commits of 0.1 ms; P = H = 3, tau = 1, K = 2."""
    virtual = {"step_model": "fixed", "slow": (1.0, 1.5), "delay_s": 0.001, "start_s": 0.096}
    return finished(
        world_of(config_of(virtual, learners=2, quorum=2, rounds=rounds, period=3, fragments=3, overlap=1, lead=lead))
    )


def test_lock_step_by_hand() -> None:
    """A round takes 6.1 ms: METADATA, PULL, FRAGMENT (1 ms each), merge 2, commit 0.1, UPDATE 1."""
    assert steps(two_learners(0, 4), 4) == [
        (100.0, "L0", 1, 0.0), (100.0, "L1", 1, 0.0),
        (256.1, "L0", 2, 56.1), (256.1, "L1", 2, 6.1),
        (412.2, "L0", 3, 56.1), (412.2, "L1", 3, 6.1),
        (568.3, "L0", 4, 56.1), (568.3, "L1", 4, 6.1),
    ]  # fmt: skip


def test_a_lead_of_two_by_hand() -> None:
    """L0 begins step g + 1 when round g - 2 is closed, which L1's step g - 2 decides; L1 never waits."""
    assert steps(two_learners(2, 6), 9) == [
        (100.0, "L0", 1, 0.0), (100.0, "L1", 1, 0.0),
        (200.0, "L0", 2, 0.0), (250.0, "L1", 2, 0.0),
        (300.0, "L0", 3, 0.0),
        (400.0, "L0", 4, 0.0), (400.0, "L1", 3, 0.0),
        (500.0, "L0", 5, 0.0), (550.0, "L1", 4, 0.0),
        (600.0, "L0", 6, 0.0), (700.0, "L1", 5, 0.0),
        (706.1, "L0", 7, 6.1),
        (850.0, "L1", 6, 0.0), (856.1, "L0", 8, 50.0),
        (1000.0, "L1", 7, 0.0), (1006.1, "L0", 9, 50.0),
    ]  # fmt: skip


@pytest.mark.parametrize("model", ["fixed", "jitter", "heavy"])
@pytest.mark.parametrize("overlap", [0, 2])
@pytest.mark.parametrize("lead", [0, 1, 2, 4])
def test_learners_are_at_most_the_lead_and_one_step_apart(lead: int, overlap: int, model: str) -> None:
    virtual = {"step_model": model, "jitter": 0.3, "slow": (1.0, 1.18, 2.0)}
    config = config_of(virtual, learners=3, quorum=3, rounds=40, period=6, fragments=6, overlap=overlap, lead=lead)
    assert most_apart(finished(world_of(config))) == lead + 1


@pytest.mark.parametrize("lead", [0, 2])
def test_with_fewer_rounds_than_steps_they_run_freely_between_two_rounds(lead: int) -> None:
    virtual = {"jitter": 0.3, "slow": (1.0, 1.18, 2.0)}
    config = config_of(virtual, learners=3, quorum=3, rounds=40, period=6, fragments=2, overlap=2, lead=lead)
    assert most_apart(finished(world_of(config))) == lead + 6 // 2


def test_without_a_lead_nobody_waits_for_anybody() -> None:
    config = config_of({"slow": (1.0, 2.0)}, learners=2, quorum=2, rounds=40, period=6, fragments=6, overlap=2)
    world = finished(world_of(config))
    assert most_apart(world) > 30
    assert {r.detail["waited_ns"] for r in of_kind(world, Kind.STEP_ENDED)} == {0}


def test_a_learner_that_dies_stops_the_lock_step_until_it_is_back() -> None:
    config = config_of({"start_s": 0.2}, learners=3, quorum=3, rounds=60, period=6, fragments=6, overlap=2, lead=0)
    world = finished(world_of(config, [Fault("kill", 2 * SECOND, learner=1, for_ns=SECOND)]))
    merged = [r.time_ns / SECOND for r in of_kind(world, Kind.MERGED)]
    longest = max(b - a for a, b in pairwise(merged))
    assert 1.2 < longest < 1.8  # down 1 s, start 0.2 s, and its first steps
    waited = [r.detail["waited_ns"] / SECOND for r in of_kind(world, Kind.STEP_ENDED) if learner_of(r.process) != 1]
    assert sorted(waited)[-2:] == pytest.approx([longest - 0.1] * 2, abs=0.15)
