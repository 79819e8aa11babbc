"""The default exploration: many random fault schedules, every invariant after every event."""

from __future__ import annotations

import os

import pytest

from workbench.protocol.faults import FAULT_KINDS
from workbench.protocol.round_state import RoundState
from workbench.simulate import explorer, schedules
from workbench.simulate.schedules import ROUNDS, draw

pytestmark = pytest.mark.timeout(1800)
"""A hang guard: the exploration takes about 70 s on two free cores."""

SCHEDULES = 2000

REGRESSIONS = {
    7: "the syncer heard the clock of a message whose records were lost",
    102: "grace = all with eligibility = step and no lead: the wait for the slowest grows (not drawn any more)",
    181: "paced: a quorum of learners that the rule does not admit ended its grace for ever",
    219: "a process that started while the syncer was down never asked again",
    345: "anchor = base: a learner that had refused was never asked again, and the round hung",
    378: "the syncer's own stop was counted as a gap between merges",
    397: "a connection that was closed before its JOIN arrived was kept for ever",
    1559: "the JOIN of a process that the supervisor had seen end was taken",
    1253: "a joiner whose BEGIN was lost waited for ever",
    1657: "a snapshot between a merge and its commit held the new version's contributions and the old version",
    1903: "a snapshot whose MARKER was lost kept joiners waiting for a minute",
    101264: "a syncer that had been stopped called a learner silent whose message it had not yet taken",
    201754: "going back to a snapshot brought back a quorum of more learners than had been left",
    203630: "going back to a snapshot opened a round again whose merge the snapshot held",
    51711: "a round with a refused contribution whose learner was lost then: the check did not count it toward K",
}
"""Seeds that failed once, and what was wrong."""


@pytest.fixture(scope="module")
def report() -> explorer.ExploreReport:
    return explorer.explore(SCHEDULES, processes=min(2, os.cpu_count() or 1))


def test_every_invariant_holds_at_every_event(report: explorer.ExploreReport) -> None:
    assert report.failures == [], "\n".join(f"{f.seed}: {f.message}\n  {f.command}" for f in report.failures[:5])
    assert report.schedules == SCHEDULES
    assert report.rounds_min >= ROUNDS >= 40
    print(f"{report.events} events, {report.merges} merges, longest gap {report.gap:.2f} of B")


def test_schedules_are_as_wide_as_promised() -> None:
    drawn = [draw(seed) for seed in range(SCHEDULES)]
    assert min(len(schedule.faults) for schedule in drawn) >= 3
    assert {schedule.config["learners"] for schedule in drawn} == {2, 3, 4, 5, 6}
    assert {schedule.config["quorum"] for schedule in drawn} >= {1, 2, 3, 4, 5, 6}
    assert {schedule.config["fragments"] for schedule in drawn} >= {1, 2, 3, 4, 5}
    assert {schedule.config["period"] for schedule in drawn} >= {1, 2, 3, 4, 5}
    assert {schedule.config["overlap"] for schedule in drawn} >= {0, 1, 2, 3}


def test_every_kind_of_fault_meets_every_state_of_a_round(report: explorer.ExploreReport) -> None:
    kinds = [kind for kind in FAULT_KINDS if kind != "late"]  # that one comes before there are rounds
    print(f"{'':14}" + "".join(f"{state.name:>12}" for state in RoundState))
    for kind in kinds:
        print(f"{kind:14}" + "".join(f"{report.coverage[kind][state.name]:12}" for state in RoundState))
    empty = [(kind, state.name) for kind in kinds for state in RoundState if not report.coverage[kind][state.name]]
    assert empty == []


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_a_seed_that_failed_once(seed: int) -> None:
    assert explorer.run_seed(seed).failure == ""
    then = draw(seed, more=False, guards=False, roster=False, stops=False)
    assert schedules.run(then).failure == "", "the schedule that it was then"


def test_a_schedule_is_its_line() -> None:
    for seed in range(50):
        schedule = draw(seed)
        assert schedules.parse(schedule.text()) == schedule


def test_one_seed_is_one_course() -> None:
    first, second = schedules.build(draw(3))[0], schedules.build(draw(3))[0]
    first.run()
    second.run()
    assert first.records == second.records
    assert len(first.records) > 300
