"""The storm of five minutes in virtual time: limits in seconds are asserted here."""

from __future__ import annotations

import pytest

import workbench as wb
from tests import storms
from workbench.algorithms.schedule import offsets
from workbench.analysis.from_records import tables as tables_of
from workbench.protocol.events import StopAsked
from workbench.protocol.faults import NO_FAULTS, FaultPlan
from workbench.protocol.records import Kind, Record
from workbench.protocol.scenario import load_faults
from workbench.simulate.arithmetic import Ledgered
from workbench.simulate.invariants import Watch
from workbench.simulate.world import World

CONFIG = wb.preset("storm").set({"eval_every": 0, "virtual.step_s": 0.2, "virtual.start_s": 0.5})
LENGTH_NS = 300 * storms.SECOND
DOWN_S = 5.0
"""Of most kills."""


def course(plan: FaultPlan) -> list[Record]:
    """A run of five minutes under all invariants; nobody helps it."""
    watch = Watch(CONFIG.learners, CONFIG.fragments)
    world = World(CONFIG, offsets(CONFIG.fragments, CONFIG.period), Ledgered(CONFIG.fragments), plan, observer=watch)
    world.run(until_ns=LENGTH_NS)
    assert not world.failed
    world.give(world.syncer, StopAsked("stopped"))
    world.run(until_ns=LENGTH_NS + 20 * storms.SECOND)
    assert world.finished == "stopped"
    return world.records


@pytest.fixture(scope="module")
def storm() -> list[Record]:
    return course(load_faults(storms.STORM, CONFIG))


def test_it_is_as_hard_as_promised(storm: list[Record]) -> None:
    found = storms.struck(storm, long_s=3.0)
    assert found.total() >= 60 and min(found[kind] for kind in ("kill", "stall", "cut")) >= 12
    assert found["kill_syncer"] == 1 and storms.two_down(storm) >= 4


def test_no_gap_between_merges_is_longer_than_its_bound(storm: list[Record]) -> None:
    assert storms.excesses(storm, tables_of(storm), CONFIG) == []


def test_the_books_balance_and_every_state_is_the_donors(storm: list[Record]) -> None:
    storms.ledger_of(storm, CONFIG)
    found = storms.recoveries(storm)
    assert len(found) >= 12
    assert all(adopted.digest == left.digest for adopted, left in found)


def test_participation_is_that_of_a_run_without_faults(storm: list[Record]) -> None:
    share, each = storms.shares(tables_of(storm))
    calm, _ = storms.shares(tables_of(course(NO_FAULTS)))
    print(f"participation {share:.4f} in the storm, {calm:.4f} without; by learner {each}")
    assert share >= 0.95 and calm - share <= 0.03


def test_after_a_kill_the_others_go_on_at_once(storm: list[Record]) -> None:
    found = storms.after_kills(storm)
    print({name: round(seconds, 3) for name, seconds in found.items()})
    steps = [r.detail["end_ns"] - r.detail["start_ns"] for r in storms.of_kind(storm, Kind.STEP_ENDED)]
    step_s = sorted(steps)[len(steps) // 2] / storms.SECOND
    assert found["others merge"] < step_s * (1 + CONFIG.grace_cap_steps)
    assert found["victim trains"] < DOWN_S + CONFIG.virtual.start_s + 1.0
    assert found["victim is merged"] < found["victim trains"] + CONFIG.period * step_s
