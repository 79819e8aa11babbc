"""Points in time have one origin, the start of rounds; causes have one name, whoever tells them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from tests.analysis.runs import CONFIG, SECOND, simulated, with_evals
from tests.simulate.worlds import config_of, of_kind, world_of
from workbench.analysis.from_records import tables
from workbench.analysis.reports import goodput, overview, participation, rounds, validation
from workbench.protocol.records import Kind, Record, process_of

LENGTHS = ("injected_ns", "waited_ns")


def later(record: Record, by_ns: int) -> Record:
    """The same record of a run whose processes started so much earlier."""
    moved = {
        name: value + by_ns if name.endswith("_ns") and name not in LENGTHS and value >= 0 else value
        for name, value in record.detail.items()
    }
    return msgspec.structs.replace(record, time_ns=record.time_ns + by_ns, detail=moved)


def rounded(found: Any) -> Any:
    """The same with floats to the microsecond."""
    if isinstance(found, dict):
        return {name: rounded(value) for name, value in found.items() if name != "began_s"}
    if isinstance(found, list | tuple):
        return [rounded(value) for value in found]
    return round(found, 6) if isinstance(found, float) else found


def test_no_table_depends_on_how_long_the_processes_took_to_start() -> None:
    records = with_evals(simulated())
    moved = [later(record, 7 * SECOND) for record in records]
    for module in (overview, goodput, participation, rounds, validation):
        name = module.__name__
        assert rounded(module.report(tables(moved), CONFIG)) == rounded(module.report(tables(records), CONFIG)), name
    told = overview.report(tables(records), CONFIG)
    duration = told["run"]["duration_s"]
    assert told["run"]["began_s"] > 0
    assert all(0 < row["time_s"] < duration for row in told["faults"])
    assert goodput.report(tables(records), CONFIG)["edges_s"][0] == 0.0
    assert participation.report(tables(records), CONFIG)["over_time"]["edges_s"][-1] == pytest.approx(duration)


SLOW_LINK = {"slow": (1.0, 1.0, 2.0), "delay_s": 0.06}
NARROW = {"delay_s": 0.15, "delay_jitter": 1.0, "loss": 0.1, "slow": (1.0, 1.0, 2.0)}


@pytest.mark.parametrize(
    ("virtual", "keys", "seed"),
    [
        ({}, {"learners": 3, "grace": "none"}, 1),
        ({"slow": (1.0, 1.0, 3.0)}, {"learners": 3, "grace": "none"}, 1),
        (SLOW_LINK, {"learners": 3, "grace": "none"}, 2),
        (NARROW, {"learners": 4, "quorum": 2, "grace": "fixed", "grace_s": 0.02, "pull_limit_min_s": 0.05}, 2),
        ({"slow": (1.0, 1.0, 1.1)}, {"learners": 3, "eligibility": "step", "grace": "none"}, 0),
    ],
)
def test_a_starved_learner_has_the_cause_that_participation_names(
    virtual: dict[str, Any], keys: dict[str, Any], seed: int
) -> None:
    config = config_of(virtual, period=4, fragments=4, overlap=3, rounds=150, seed=seed, **keys)
    world = world_of(config)
    world.run(until_ns=400 * SECOND)
    told = overview.report(tables(world.records), config)
    table = participation.report(tables(world.records), config)
    assert told["incidents"]["starved"]
    for row in told["incidents"]["starved"]:
        mine = table["by_learner"][row["learner"]]
        assert mine["left_out"][row["cause"]] == max(mine["left_out"].values())
        assert row["remedy"] == table["remedies"].get(row["cause"], "")
        counted: Counter[str] = Counter()
        for record in of_kind(world, Kind.LEARNER_STARVED):
            if record.peer == process_of(row["learner"]):
                counted.update(record.detail["causes"])
        elsewhere = mine["not_expected_count"] + 4  # rounds open when it healed, was lost, or the run ended
        assert sum((counted - Counter(mine["left_out"])).values()) <= elsewhere
        assert set(counted) <= {*mine["left_out"], "gone"}
