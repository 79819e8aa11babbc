"""Learners that are added to a run of real processes, and removed from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.engine.real_runs import GUARD_S, of_kind, records_of, tiny, until
from workbench.analysis.arrays.presence import presences
from workbench.analysis.from_tape import tables_of
from workbench.cli.main import main
from workbench.config import ConfigError
from workbench.engine.launch import Run, launch
from workbench.protocol.faults import Fault, FaultPlan
from workbench.protocol.records import Kind, process_of
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.tape import open_tape
from workbench.tape.ledger import Ledger

PLAN = FaultPlan((Fault("add", 0, at_merge=5), Fault("remove", 0, learner=1, at_merge=30)))


def merged(run: Run, learner: int) -> bool:
    return any(learner in r.detail["learners"] for r in of_kind(records_of(run.path), Kind.MERGED))


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """L2 comes by the scenario, L1 leaves by it; L3 comes and L0 leaves because somebody asks for it."""
    with launch(tiny(learners=2), tmp_path_factory.mktemp("runs") / "changed", faults=PLAN) as run:
        run.wait(rounds=1, timeout_s=GUARD_S)
        until(lambda: merged(run, 2), "the learner that the scenario adds is merged")
        until(lambda: 1 in run.status()["removed"], "the scenario removes another")
        with pytest.raises(ConfigError, match="L1 was removed already"):
            run.remove(1)
        assert run.add() == [3]
        until(lambda: merged(run, 3), "the learner that somebody adds is merged")
        run.set(quorum=2)
        assert main(["control", str(run.path), "remove", "0"]) == 0
        with pytest.raises(ConfigError, match="without L2 1 learners are left for quorum = 2"):
            run.remove(2)
        with pytest.raises(ConfigError, match="there is no L9; there are L2, L3"):
            run.remove(9)
        until(lambda: [one["state"] for one in run.status()["learners"]][:2] == ["removed"] * 2, "both are gone")
        run.wait(rounds=int(run.status()["merges"]) + 5, timeout_s=GUARD_S)
        with pytest.raises(ConfigError, match="there is no process for a kill"):
            run.kill(0)
    return run.path


def test_the_tape_says_who_came_and_who_went(changed: Path) -> None:
    records = records_of(changed)
    assert [(r.peer, r.detail["who"]) for r in of_kind(records, Kind.LEARNER_ADDED)] == [
        (process_of(2), "scenario"), (process_of(3), "python")
    ]  # fmt: skip
    removed = {r.peer: r for r in of_kind(records, Kind.LEARNER_LOST) if r.reason == "removed"}
    assert {peer: r.detail["who"] for peer, r in removed.items()} == {process_of(1): "scenario", process_of(0): "cli"}
    for peer, lost in removed.items():
        after = records[records.index(lost) :]
        assert not [r for r in after if r.process == peer], "nothing of it is taken any more"
    ends = [(r.peer, r.reason) for r in of_kind(records, Kind.PROCESS_ENDED) if r.peer in removed]
    assert sorted(ends) == [(process_of(0), "exit 0"), (process_of(1), "exit 0")]


def test_the_books_balance_and_the_removed_are_allocated_no_further(changed: Path) -> None:
    records = records_of(changed)
    ledger = Ledger(2, 3, [1, 1, 1])
    for record in records:
        ledger.apply(record)
        ledger.check_last()
    assert ledger.processed(2) > 0 and ledger.processed(3) > 0
    there = presences(tables_of(open_tape(changed)))
    assert [bool(one.removed_ns >= 0) for one in there] == [True, True, False, False]
    assert np.sum(there[3].alive[:, 1] - there[3].alive[:, 0]) > 0


def test_it_replays_bit_for_bit_and_its_machine_decides_again(changed: Path) -> None:
    report = replay(changed)
    assert report.bit_exact, report.first_difference
    again = rerun_machines(changed)
    assert again.equal, again.first_difference
