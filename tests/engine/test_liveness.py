"""Gaps between merges when one of four real learners is killed, stopped, or cut off, beside their bound B.

B comes from the tape (PROTOCOL section 15, step times before the fault), by way of ``inspect``'s report.  That no gap
exceeds it is asserted in virtual time, in every schedule that is explored; here, where others use the machine too, what
it took is printed, and ten times B says that the run hung.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.real_runs import GUARD_S, Journal, of_kind, records_of, tiny, until
from workbench.analysis.reports import REPORTS
from workbench.engine.launch import launch
from workbench.protocol.records import Kind, learner_of
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.tape import open_tape

HANG_FACTOR = 10
STOPPED_S = 10.0
CUT_S = 4.0


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def is_back(journal: Journal, learner: int) -> bool:
    """Whether a learner joined again after its fault and was merged since."""
    fault = journal.since(learner, Kind.FAULT_INJECTED)
    return journal.is_merged(learner, journal.since(learner, Kind.LEARNER_JOINED, from_=fault))


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four learners; one killed, one stopped for 10 s, one cut off for 4 s, one after the other."""
    path = tmp_path_factory.mktemp("runs") / "run"
    with launch(tiny(4, quorum=3), path) as run:
        run.wait(rounds=60, timeout_s=GUARD_S)
        journal = Journal(path)
        run.kill(1, down_s=1.0)
        until(lambda: is_back(journal, 1), "L1 is merged again")
        run.stall(2, STOPPED_S)
        until(lambda: is_back(journal, 2), "L2 is merged again")
        run.cut(3, CUT_S)
        until(lambda: is_back(journal, 3), "L3 is merged again")
    return path


def test_merges_go_on_whoever_is_gone(struck: Path) -> None:
    report: dict[str, Any] = REPORTS["rounds"](open_tape(struck))
    found = {row["kind"]: row for row in report["at_faults"]}
    assert set(found) == {"kill", "stall", "cut"}
    for row in report["at_faults"]:
        print(f"{row['kind']} L{row['learner']}: longest gap {row['longest_s']:.3f} s, B {row['bound_s']:.3f} s")
        assert row["longest_s"] < HANG_FACTOR * row["bound_s"] < math.inf, row
    assert STOPPED_S - 0.01 <= found["stall"]["for_s"] < HANG_FACTOR * STOPPED_S, (
        "no shorter; later where others keep us busy"
    )


def test_whoever_was_gone_was_declared_lost_and_came_back(struck: Path) -> None:
    records = records_of(struck)
    lost = {learner_of(r.peer): r.reason for r in of_kind(records, Kind.LEARNER_LOST) if r.reason != "ended"}
    assert set(lost) == {1, 2, 3}
    assert lost[2] == lost[3] == "heartbeat"
    steps = [r.time_ns for r in of_kind(records, Kind.STEP_ENDED) if learner_of(r.process) == 3]
    cut = next(r for r in of_kind(records, Kind.FAULT_INJECTED) if r.reason == "cut")
    during = [t for t in steps if cut.time_ns < t < cut.time_ns + int(CUT_S * 1e9)]
    assert len(during) > 10, "who is cut off trains on"


def test_the_run_replays_bit_for_bit(struck: Path) -> None:
    report = replay(struck)
    assert report.bit_exact, report.first_difference
    again = rerun_machines(struck)
    assert again.equal, again.first_difference
