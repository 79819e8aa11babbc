"""Why a merge saw whom: checked against the records of random runs, and the sentence on one made by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from tests.tape.examples import Script
from tests.tape.virtual_runs import Taped, taped
from workbench.analysis.arrays.exclusions import ABSENCES, UNKNOWN, standings
from workbench.analysis.arrays.participation import participation
from workbench.analysis.from_tape import tables_of
from workbench.analysis.merge_reasons import Why
from workbench.protocol.records import SYNCER, Kind, Record, learner_of, process_of
from workbench.tape import JournalWriter, Recorder, TapeError, open_tape

MS = 10**6
SEEDS = (2, 4, 5, 6, 8, 10)


@pytest.fixture(scope="module", params=SEEDS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Taped:
    return taped(request.param, tmp_path_factory.mktemp("why") / "run", every=10**9)


@pytest.fixture(scope="module")
def explained(run: Taped) -> list[Why]:
    return [run.tape.wb.why(merge) for merge in range(run.tape["merges"].sizes["merge"])]


def test_who_was_taken_is_what_the_merge_recorded(run: Taped, explained: list[Why]) -> None:
    merged = [r for r in run.records if r.kind == Kind.MERGED]
    assert len(merged) == len(explained) > 10
    for r, why in zip(merged, explained, strict=True):
        assert (why.round, why.fragment, why.version) == (r.round, r.fragment, r.version)
        assert [t.learner for t in why.taken] == r.detail["learners"]
        assert [t.step for t in why.taken] == r.detail["steps_captured"]
        assert [(t.steps, t.tokens) for t in why.taken] == list(
            zip(r.detail["c_steps"], r.detail["c_tokens"], strict=True)
        )
        assert math.fsum(t.weight for t in why.taken) == pytest.approx(1.0)
        for t in why.taken:
            captured = run.records[t.captured]
            assert (captured.kind, captured.process, captured.step) == (
                Kind.FRAGMENT_CAPTURED, process_of(t.learner), t.step,
            )  # fmt: skip
            assert captured.seq <= t.heard == r.clock[process_of(t.learner)]
            assert t.lag_s == pytest.approx((r.time_ns - captured.time_ns) * 1e-9, abs=1e-6)


def members(run: Taped, event: int) -> set[int]:
    """Learners that the run had just before an event."""
    there = set(range(run.config.learners))
    for r in run.records[:event]:
        if r.kind == Kind.LEARNER_ADDED:
            there.add(learner_of(r.peer))
        elif r.kind == Kind.LEARNER_LOST and r.reason == "removed":
            there.discard(learner_of(r.peer))
    return there


def test_who_was_missed_has_the_reason_that_the_analyses_know(run: Taped, explained: list[Why]) -> None:
    tables = tables_of(run.tape)
    standing = standings(tables, participation(tables))
    for why in explained:
        assert {t.learner for t in why.taken}.isdisjoint(m.learner for m in why.missed)
        assert {m.learner for m in why.missed} == members(run, why.event) - {t.learner for t in why.taken}
        for m in why.missed:
            known = standing[why.merge, m.learner]
            if known not in (*ABSENCES, UNKNOWN):
                assert m.reason == known or (m.reason, known) == ("gone", "unanswered")
            assert f"L{m.learner}" in why.sentence and m.said in why.sentence
            assert not m.by_s < 0


def test_the_clock_entries_show_that_it_could_not_have_been_seen(run: Taped, explained: list[Why]) -> None:
    late = 0
    for why in explained:
        for m in why.missed:
            decided = run.records[m.decided]
            assert decided.process == SYNCER
            clock = decided.clock
            assert m.heard == (clock[process_of(m.learner)] if process_of(m.learner) < len(clock) else 0)
            if m.came < 0 or m.reason in ("nonfinite", "shape", "incarnation", "gone"):
                continue
            came = run.records[m.came]
            assert (came.process, came.seq) == (process_of(m.learner), m.came_seq)
            assert m.came_seq > m.heard
            assert not run.tape.wb.before(m.came, m.decided)
            late += 1
    assert late > 0


def tape_of(records: list[Record], folder: Path) -> xr.DataTree:
    folder.mkdir()
    with JournalWriter(folder / "journal", {"run_id": "by hand"}) as journal:
        journal.append(records)
    with Recorder(folder):
        pass
    return open_tape(folder)


def by_hand() -> list[Record]:
    """L0 and L1 are asked at 1.00 s; grace ended at 1.00, L1's fragment leaves at 1.21; L2 has no new step before 1.05;
    L3 dies at 0.9 s and is back at 1.5."""
    script, records = Script(), list[Record]()

    def at(ms: int, kind: Kind, process: int, cause: Record | None = None, **columns: Any) -> Record:
        script.now = ms * MS - 1000
        records.append(script(kind, process, cause, **columns))
        return records[-1]

    for m in range(4):
        joined = at(10, Kind.LEARNER_JOINED, SYNCER, peer=process_of(m), value=1.0, version=1, step=1, reason="process")
        at(20, Kind.STATE_ADOPTED, process_of(m), joined, reason="initial", digest=5)
        stepped = at(30, Kind.STEP_ENDED, process_of(m), step=411, global_step=51, tokens=8, value=5.0)
        at(40, Kind.LEARNER_HEALED, SYNCER, stepped, peer=process_of(m), step=411)
    where: dict[str, Any] = {"round": 53, "fragment": 5}
    at(100, Kind.ROUND_OPENED, SYNCER, **where, version=0, setting=0)
    first = at(500, Kind.STEP_ENDED, process_of(0), step=412, global_step=52, tokens=8, value=5.0)
    at(510, Kind.ROUND_READY, SYNCER, first, peer=process_of(0), **where)
    at(510, Kind.QUORUM_REACHED, SYNCER, value=0.49, **where)
    at(900, Kind.LEARNER_LOST, SYNCER, peer=process_of(3), version=1, reason="exit")
    detail = {"admitted": [0, 1], "left_out": {2: "not_fresh"}}
    at(1000, Kind.GRACE_ENDED, SYNCER, value=0.49, reason="over", detail=detail, **where)
    pulls = [
        at(1000, Kind.PULL_SENT, SYNCER, peer=process_of(m), base_version=0, reason="f32", **where) for m in (0, 1)
    ]
    counts: dict[str, Any] = {"base_version": 0, "steps": 2, "tokens": 16, **where}
    sent = at(1002, Kind.FRAGMENT_CAPTURED, process_of(0), pulls[0], step=412, reason="f32", **counts)
    at(1004, Kind.FRAGMENT_ARRIVED, SYNCER, sent, peer=process_of(0), step=412, reason="f32",
       detail={"bytes": 4, "captured_ns": sent.time_ns}, **counts)  # fmt: skip
    at(1050, Kind.STEP_ENDED, process_of(2), step=412, global_step=52, tokens=8, value=5.0)
    at(1200, Kind.MERGED, SYNCER, version=1, base_version=0, tokens=16, **where, detail={
        "learners": [0], "steps_captured": [412], "c_steps": [2], "c_tokens": [16], "weights": [3.0],
        "base_versions": [0], "norms": [1.0], "cosines": [1.0], "digests": [7], "norm": 1.0, "outer_digest": 8,
        "first_ready_ns": 510 * MS, "quorum_ns": 510 * MS, "grace_ns": 1000 * MS, "pull_ns": 1190 * MS,
        "merge_ns": 1200 * MS,
    })  # fmt: skip
    late = at(1210, Kind.FRAGMENT_CAPTURED, process_of(1), pulls[1], step=411, reason="f32", **counts)
    at(1220, Kind.FRAGMENT_DROPPED, SYNCER, late, peer=process_of(1), step=411, reason="pull_limit",
       detail={"bytes": 4, "captured_ns": late.time_ns}, **counts)  # fmt: skip
    at(1230, Kind.MERGE_COMMITTED, SYNCER, version=1, **where)
    at(1240, Kind.UPDATE_SENT, SYNCER, peer=process_of(0), version=1, **where)
    at(1500, Kind.LEARNER_JOINED, SYNCER, peer=process_of(3), value=2.0, version=2, step=412, reason="process")
    return records


def test_the_sentence_says_who_what_why_and_by_how_much(tmp_path: Path) -> None:
    tape = tape_of(by_hand(), tmp_path / "run")
    why = tape.wb.why(0)
    assert str(why) == (
        "Merge 0 (round 53, fragment 5) took L0 up to step 412; it did not see L1's step 411: its fragment left 0.21 s "
        "after the grace window closed; nor L2's step 412: it was a step short of the round, and nothing had come of "
        "it since the first learner was ready; its next step ended 0.05 s after the grace window closed; nor L3: it "
        "had been gone for 0.3 s, and joined 0.3 s after the merge."
    )
    assert [(m.reason, m.by_steps) for m in why.missed] == [("pull_limit", 0), ("not_fresh", 1), ("down", 0)]
    assert [m.by_s for m in why.missed] == pytest.approx([0.21, 0.05, 0.3])
    assert why.to_dict()["sentence"] == why.sentence
    assert why.to_dict()["taken"][0]["weight"] == 1.0


def test_the_critical_path_of_the_same(tmp_path: Path) -> None:
    tape = tape_of(by_hand(), tmp_path / "run")
    path = tape.wb.critical_path(-1)
    told = [(stage.name, round(stage.seconds, 3), stage.waited_for) for stage in path.stages]
    assert told == [
        ("opened", 0.0, ()),
        ("first_ready", 0.41, ("L0",)),
        ("quorum", 0.0, ("L0",)),
        ("grace", 0.49, ("L2",)),
        ("pulled", 0.0, ()),
        ("last_fragment", 0.004, ("L0",)),
        ("closed", 0.186, ("L1",)),
        ("merged", 0.01, ("syncer",)),
        ("committed", 0.03, ("syncer",)),
        ("sent", 0.01, ("syncer",)),
    ]
    assert path.longest.name == "grace"
    assert path.seconds == pytest.approx(1.14)
    assert str(path).splitlines()[3] == "    490.00 ms  until grace, waited for L2"
    kinds = tape["events"].dataset["kind"].values
    because = {stage.name: kinds[stage.because] for stage in path.stages if stage.because >= 0}
    assert because == {
        "first_ready": Kind.STEP_ENDED, "quorum": Kind.STEP_ENDED, "last_fragment": Kind.FRAGMENT_CAPTURED,
    }  # fmt: skip


def test_critical_paths_of_random_runs_are_whole_and_causal(run: Taped) -> None:
    order = [
        "opened",
        "first_ready",
        "quorum",
        "grace",
        "pulled",
        "last_fragment",
        "closed",
        "merged",
        "committed",
        "sent",
    ]
    merges = run.tape["merges"].dataset
    for merge in range(merges.sizes["merge"]):
        path = run.tape.wb.critical_path(merge)
        names = [stage.name for stage in path.stages]
        assert names == [name for name in order if name in names]
        assert {"opened", "first_ready", "quorum", "grace", "last_fragment", "merged"} <= set(names)
        assert all(stage.seconds >= 0 for stage in path.stages)
        assert path.seconds == pytest.approx(path.stages[-1].time_s - path.stages[0].time_s)
        for stage in path.stages:
            if stage.because >= 0:
                assert run.tape.wb.before(stage.because, stage.event)
                assert stage.waited_for == (f"L{run.records[stage.because].process - process_of(0)}",)
        grace = run.records[next(stage.event for stage in path.stages if stage.name == "grace")]
        waited = next(stage.waited_for for stage in path.stages if stage.name == "grace")
        if grace.reason == "over":
            assert set(waited) <= {f"L{m}" for m in grace.detail["left_out"]}


@pytest.mark.parametrize("ask", ["why", "critical_path"])
def test_a_merge_that_does_not_exist_is_refused(tmp_path: Path, ask: str) -> None:
    tape = tape_of(by_hand(), tmp_path / "run")
    with pytest.raises(TapeError, match="there is no merge 1; the tape has 1 merges, 0 to 0"):
        getattr(tape.wb, ask)(1)
    assert np.isfinite(tape.wb.critical_path(0).seconds)
