"""Faults of links, steps and numbers on real processes: they act, they end, they are told, and the run replays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.engine.real_runs import GUARD_S, Journal, of_kind, records_of, tiny, until
from workbench.analysis.arrays.participation import participation, windows
from workbench.analysis.from_tape import tables_of
from workbench.config import ConfigError
from workbench.engine.launch import launch
from workbench.protocol.faults import FOREVER_NS, Fault, FaultPlan
from workbench.protocol.records import Kind, Record, process_of
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.tape import open_tape

pytestmark = pytest.mark.usefixtures("own_cache")

CUT_S = 3.0
PLAN = FaultPlan((Fault("lose_up", 0, 1, at_merge=10, count=3), Fault("delay", 0, 0, at_round=1, delay_ns=10**6)))


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three learners under one fault after the other, nobody quarantined for it; then stopped in order."""
    path = tmp_path_factory.mktemp("runs") / "struck"
    with launch(tiny(period=12, quarantine_after=0), path, faults=PLAN) as run:
        run.wait(rounds=20, timeout_s=GUARD_S)
        run.cut(1, CUT_S)
        run.slow(2, 3.0, for_s=1.0)
        journal = Journal(run.path)
        until(lambda: journal.ended("slow", 2) and journal.ended("cut", 1), "both are over")
        until(lambda: journal.has_merged(1, Kind.LEARNER_LOST), "the learner that was cut off is merged again")
        for kind in ("nan", "corrupt", "shape", "random"):
            run.poison(0, kind)
        run.poison(2, "flip", persistent=True)
        run.poison(1, "scale", factor=4.0)
        spent = (("random", 0), ("flip", 2), ("scale", 1))
        until(lambda: all(journal.ended(*one) for one in spent), "all are used up")
        run.cut(2, direction="up")
        run.kill(2, down_s=0.1)
        until(lambda: run.status()["learners"][2]["number"] == 2, "another process is there")
        assert run.status()["learners"][2]["faults"] == ["cut_up"]
        assert run.heal(2) == 1
        until(lambda: journal.has_merged(2, Kind.LEARNER_JOINED, 2.0), "the healed learner is merged")
        run.exit(1, down_s=0.0)
        until(lambda: run.status()["learners"][1]["state"] == "ended", "it has ended itself")
        with pytest.raises(ConfigError, match="L1 is ended: there is no process for a stall"):
            run.stall(1)
        with pytest.raises(ConfigError, match="fault: unknown key 'factor' of a cut; allowed: for_s, kind, learner"):
            run.inject("cut", 0, factor=3)
    assert run.outcome() == (0, "")
    return path


@pytest.fixture(scope="module")
def records(struck: Path) -> list[Record]:
    return records_of(struck)


def one(records: list[Record], kind: Kind, reason: str) -> Record:
    (found,) = [r for r in of_kind(records, kind) if r.reason == reason]
    return found


def test_struck_run_replays_bit_for_bit_and_its_machine_decides_again(struck: Path) -> None:
    report = replay(struck)
    assert report.bit_exact, report.first_difference
    again = rerun_machines(struck)
    assert again.equal, again.first_difference


def test_a_learner_that_is_cut_off_trains_on_and_comes_back_as_the_same_process(records: list[Record]) -> None:
    began, over = (one(records, kind, "cut") for kind in (Kind.FAULT_INJECTED, Kind.FAULT_ENDED))
    assert began.detail["until_ns"] - began.time_ns == pytest.approx(CUT_S * 1e9, rel=1e-2)
    print(f"cut for {over.value:.3f} s")
    assert over.value >= CUT_S and over.detail["why"] == "over"
    lost = [r.reason for r in of_kind(records, Kind.LEARNER_LOST) if r.peer == process_of(1)]
    assert lost[0] == "heartbeat"
    joined = [(r.reason, r.value) for r in of_kind(records, Kind.LEARNER_JOINED) if r.peer == process_of(1)]
    assert joined == [("process", 1.0), ("rejoin", 1.0)]
    steps = [r for r in of_kind(records, Kind.STEP_ENDED) if r.process == process_of(1)]
    meanwhile = [r for r in steps if began.time_ns < r.time_ns < over.time_ns]
    assert len(meanwhile) > 10, "it trained on"
    arrived = [r for r in of_kind(records, Kind.FRAGMENT_ARRIVED) if r.peer == process_of(1)]
    limit = began.time_ns + 5 * 10**8
    assert not [r for r in arrived if limit < r.time_ns < over.time_ns], "nothing came through"


def test_slow_steps_are_longer_by_what_is_recorded_as_injected(records: list[Record]) -> None:
    steps = [r for r in of_kind(records, Kind.STEP_ENDED) if r.process == process_of(2) and r.detail["injected_ns"]]
    assert steps
    whole = [r.detail["end_ns"] - r.detail["start_ns"] for r in steps]
    assert all(0 < r.detail["injected_ns"] < length for r, length in zip(steps, whole, strict=True))
    share = sum(r.detail["injected_ns"] for r in steps) / sum(whole)
    assert 0.55 < share < 0.75, "two thirds of a step that takes three times as long"


def test_bad_numbers_are_the_learners_own_records_and_do_what_they_are_for(records: list[Record]) -> None:
    applied = [(r.process - process_of(0), r.reason) for r in of_kind(records, Kind.FAULT_APPLIED)]
    assert [kind for learner, kind in applied if learner == 0] == ["nan", "corrupt", "shape", "random"]
    assert [kind for learner, kind in applied if learner == 2] == ["flip", "flip"], (
        "what was sent, and the learner's own"
    )
    assert [kind for learner, kind in applied if learner == 1] == ["scale"]
    rounds = {r.reason: r.detail["round"] for r in of_kind(records, Kind.FAULT_APPLIED) if r.process == process_of(0)}
    dropped = {r.round: r.reason for r in of_kind(records, Kind.FRAGMENT_DROPPED) if r.peer == process_of(0)}
    for kind, reason in (("nan", "nonfinite"), ("corrupt", "shape"), ("shape", "shape")):
        assert dropped[rounds[kind]] in (reason, "late", "pull_limit"), kind


def test_faults_may_wait_for_a_merge_or_a_round(records: list[Record]) -> None:
    lost = one(records, Kind.FAULT_INJECTED, "lose_up")
    assert len(of_kind(records[: records.index(lost)], Kind.MERGED)) >= 10
    assert one(records, Kind.FAULT_ENDED, "lose_up").detail["why"] == "used_up"
    delayed = one(records, Kind.FAULT_INJECTED, "delay")
    assert of_kind(records[: records.index(delayed)], Kind.ROUND_OPENED)
    assert delayed.detail["until_ns"] == FOREVER_NS, "nobody healed it"


def test_a_link_stays_cut_for_the_next_process_until_it_is_healed(records: list[Record]) -> None:
    cut, healed = (one(records, kind, "cut_up") for kind in (Kind.FAULT_INJECTED, Kind.FAULT_ENDED))
    assert cut.detail["until_ns"] == FOREVER_NS and healed.detail["why"] == "healed"
    joined = next(r for r in of_kind(records, Kind.LEARNER_JOINED) if (r.peer, r.value) == (process_of(2), 2.0))
    assert joined.time_ns > healed.time_ns


def test_exit_code_1_from_inside_and_a_fault_on_what_is_gone(records: list[Record]) -> None:
    ends = [r.reason for r in of_kind(records, Kind.PROCESS_ENDED) if r.peer == process_of(1)]
    assert ends == ["exit 1"]
    stall = one(records, Kind.FAULT_INJECTED, "stall")
    assert stall.detail["effect"] == 0 and stall.detail["until_ns"] <= stall.time_ns


def test_a_learner_under_a_fault_is_not_expected(struck: Path, records: list[Record]) -> None:
    tables = tables_of(open_tape(struck))
    found, (opened, closed) = participation(tables), windows(tables)
    for kind, learner in (("cut", 1), ("slow", 2), ("cut_up", 2)):
        began, over = (one(records, k, kind).time_ns for k in (Kind.FAULT_INJECTED, Kind.FAULT_ENDED))
        inside = (np.asarray(closed) > began) & (np.asarray(opened) < over)
        assert inside.any() and not found.expected[inside, learner].any(), kind
    healed = one(records, Kind.FAULT_ENDED, "cut").time_ns
    assert found.expected[np.asarray(opened) > healed, 1].any()


def test_a_late_learner_joins_rounds_that_began_without_it(tmp_path: Path) -> None:
    config = tiny(learners=2, start_limit_s=1.0, quorum=2)
    late = FaultPlan((Fault("late", 0, 1, for_ns=8 * 10**9),))
    with launch(config, tmp_path / "run", faults=late) as run:
        run.wait(rounds=1, timeout_s=GUARD_S)
        journal = Journal(run.path)
        until(lambda: journal.has_merged(1, Kind.LEARNER_JOINED), "the late learner is merged")
    records = records_of(tmp_path / "run")
    (began,) = of_kind(records, Kind.ROUNDS_BEGAN)
    (joined,) = [r for r in of_kind(records, Kind.LEARNER_JOINED) if r.peer == process_of(1)]
    fault = one(records, Kind.FAULT_INJECTED, "late")
    print(f"rounds began at {began.time_ns / 1e9:.1f} s, the late learner joined at {joined.time_ns / 1e9:.1f} s")
    assert fault.time_ns + 8 * 10**9 <= joined.time_ns
    assert (began.reason, began.value) == ("start_limit", 1.0) or began.time_ns >= joined.time_ns
    (first,) = [r for r in of_kind(records, Kind.LEARNER_JOINED) if r.peer == process_of(0)]
    if joined.time_ns - first.time_ns > 2e9:
        lost = of_kind(records, Kind.QUORUM_LOST)[0]
        print(f"the quorum was said to be lost {(lost.time_ns - first.time_ns) / 1e9:.2f} s after the first joined")
        assert lost.detail["missing"] == ["L1"] and first.time_ns <= lost.time_ns < joined.time_ns
        assert of_kind(records, Kind.QUORUM_REGAINED)[0].time_ns >= joined.time_ns
    assert rerun_machines(tmp_path / "run").equal
