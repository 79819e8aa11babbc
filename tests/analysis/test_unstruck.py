"""Faults of a scenario that lie beyond the end of the run."""

from __future__ import annotations

from tests.analysis.runs import began, ended, joined, merged, rec
from workbench.analysis.arrays.unstruck import unstruck
from workbench.analysis.from_records import tables
from workbench.protocol.records import Kind

SCENARIO = """
fault = [
    { kind = "kill", learner = 1, at_s = 3.0 },
    { kind = "stall", learner = 0, at_s = 5.5 },
    { kind = "kill_syncer", at_s = 7.5 },
    { kind = "nan", learner = 1, at_round = 7 },
    { kind = "nan", learner = 0, at_round = 8 },
    { kind = "kill", learner = 0, at_merge = 3 },
    { kind = "kill", learner = 0, at_merge = 4 },
    { kind = "late", learner = 1, start_s = 9.0 },
]
"""


def test_faults_beyond_the_end_are_named_by_the_clock_that_they_count_on() -> None:
    opened = [rec(Kind.ROUND_OPENED, 2 + t / 10, round=t) for t in range(1, 8)]
    merges = [merged(t, 2 + t, t) for t in (1, 2, 3)]
    found = tables([joined(0), joined(1), began(2.0), *opened, *merges, ended(7.0)])
    both = [
        {"kind": "kill_syncer", "learner": None, "trigger": "at_s", "at": 7.5},
        {"kind": "nan", "learner": 0, "trigger": "at_round", "at": 8},
        {"kind": "kill", "learner": 0, "trigger": "at_merge", "at": 4},
    ]
    assert unstruck(found, SCENARIO, "virtual") == both
    assert unstruck(found, SCENARIO, "real") == [{"kind": "stall", "learner": 0, "trigger": "at_s", "at": 5.5}, *both]
    assert unstruck(found, "", "real") == []
