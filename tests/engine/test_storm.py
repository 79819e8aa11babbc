"""Storms on real processes: half a minute by default, five minutes on eight learners in tier `slow`.

Seconds are measured and printed here; they are asserted in virtual time (`tests/simulate/test_storm.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import workbench as wb
from tests import storms
from tests.engine.real_runs import GUARD_S, records_of, tiny, until
from workbench.analysis.from_tape import tables_of
from workbench.config import RunConfig
from workbench.engine.launch import launch
from workbench.protocol.faults import NO_FAULTS, Fault, FaultPlan
from workbench.protocol.records import Kind, Record
from workbench.protocol.scenario import load_faults
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.tape import open_tape

SECOND = storms.SECOND
SHORT = (
    Fault("kill", 2 * SECOND, 0, 2 * SECOND),
    Fault("kill", 3 * SECOND, 1, 2 * SECOND),
    Fault("stall", 8 * SECOND, 2, 3 * SECOND),
    Fault("cut", 9 * SECOND, 3, 3 * SECOND),
    Fault("nan", 13 * SECOND, 3),
    Fault("kill_syncer", 15 * SECOND, for_ns=SECOND // 2),
    Fault("exit", 18 * SECOND, 2, SECOND),
)
STORM_S = 285.0
PAIRS = 3


class Stormed(NamedTuple):
    """A run, its configuration and its records."""

    path: Path
    config: RunConfig
    records: list[Record]


def all_over(path: Path, faults: int) -> Callable[[], bool]:
    """Whether so many faults have struck, and everybody was merged after the last of them."""

    def look() -> bool:
        time.sleep(1.0)
        records = records_of(path)
        struck = storms.of_kind(records, Kind.FAULT_INJECTED)
        if len(struck) < faults:
            return False
        since = struck[-1].time_ns + int(struck[-1].value * SECOND)
        merged = {m for r in storms.of_kind(records, Kind.MERGED) if r.time_ns > since for m in r.detail["learners"]}
        return merged == set(range(len({r.process for r in storms.of_kind(records, Kind.STEP_ENDED)})))

    return look


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Stormed:
    path = tmp_path_factory.mktemp("runs") / "storm"
    config = tiny(learners=4, recovery="peer")
    with launch(config, path, faults=FaultPlan(SHORT)) as run:
        run.wait(rounds=1, timeout_s=3 * GUARD_S)
        until(all_over(path, len(SHORT)), "everybody is merged after the storm", 3 * GUARD_S)
    return Stormed(path, config, records_of(path))


def shows_what_it_must(stormed: Stormed) -> None:
    """Books, states from peers, bits and decisions."""
    storms.ledger_of(stormed.records, stormed.config)
    assert all(adopted.digest == left.digest for adopted, left in storms.recoveries(stormed.records))
    report = replay(stormed.path)
    assert report.bit_exact, report.first_difference
    again = rerun_machines(stormed.path)
    assert again.equal, again.first_difference
    medians = {name: round(seconds, 3) for name, seconds in storms.after_kills(stormed.records).items()}
    print(f"medians after a kill [s]: {medians}")
    tables = tables_of(open_tape(stormed.path))
    print(f"participation {storms.shares(tables)}, beyond B {storms.excesses(stormed.records, tables, stormed.config)}")


def test_half_a_minute_of_storm_loses_nothing(short: Stormed) -> None:
    found = storms.struck(short.records, long_s=3.0)
    assert found.keys() >= {"kill", "stall", "cut", "kill_syncer", "exit"} and storms.two_down(short.records) >= 1
    shows_what_it_must(short)


class Pair(NamedTuple):
    """Two runs with the same seed: of one that nothing befalls, and of one in the storm."""

    calm: Stormed
    storm: Stormed


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    folder = tmp_path_factory.mktemp("runs")
    plan = load_faults(storms.STORM, wb.preset("storm"))
    return [
        Pair(five_minutes(folder / f"calm-{seed}", seed, NO_FAULTS), five_minutes(folder / f"storm-{seed}", seed, plan))
        for seed in range(PAIRS)
    ]


def five_minutes(path: Path, seed: int, plan: FaultPlan) -> Stormed:
    """The preset for as long as the storm blows, from the start of rounds; nobody helps it."""
    config = wb.preset("storm").set(rounds=10**6, seed=seed)
    with launch(config, path, faults=plan) as run:
        until(lambda: bool(run.status().get("began")), "rounds begin", 3 * GUARD_S)
        time.sleep(STORM_S)
    return Stormed(path, config, records_of(path))


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_five_minutes_of_storm_lose_nothing(pairs: list[Pair]) -> None:
    storm = pairs[0].storm
    found = storms.struck(storm.records, long_s=3.0)
    print(f"{found.total()} faults: {dict(found)}; two down at once {storms.two_down(storm.records)} times")
    assert found.total() >= 60 and min(found[kind] for kind in ("kill", "stall", "cut")) >= 12
    assert found["kill_syncer"] == 1 and storms.two_down(storm.records) >= 4
    assert storms.recoveries(storm.records)
    assert storms.excesses(storm.records, tables_of(open_tape(storm.path)), storm.config) == []
    shows_what_it_must(storm)


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_who_is_there_takes_part_in_a_storm_as_without_one(pairs: list[Pair]) -> None:
    for calm, storm in pairs:
        (share, each), (without, _) = (storms.shares(tables_of(open_tape(run.path))) for run in (storm, calm))
        print(f"participation {share:.4f} in the storm, {without:.4f} without; by learner {each}")
        assert share >= 0.95 and without - share <= 0.03


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_at_equal_merged_tokens_a_storm_costs_no_more_loss_than_another_seed(pairs: list[Pair]) -> None:
    found = storms.losses_at_equal_tokens([pair.calm.records for pair in pairs], [pair.storm.records for pair in pairs])
    print(found)
    assert found.difference <= found.spread
