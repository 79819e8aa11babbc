"""What the page of a run that goes on makes of records and statuses, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.runs import CONFIG, FAULTS, SECOND, fault, joined, rec, simulated
from tests.analysis.tapes import taped
from workbench.analysis.arrays.time_shares import shares_within
from workbench.analysis.from_records import tables
from workbench.pages.event_words import said_of, sentence
from workbench.pages.live_figures import Following
from workbench.pages.recording import Recording
from workbench.pages.spans import WINDOW_S, Spans
from workbench.pages.vitals import live_html
from workbench.pages.work import Shares
from workbench.protocol.faults import Fault
from workbench.protocol.records import SUPERVISOR, Kind, Record, process_of
from workbench.views.sources import bands


def test_a_fault_that_found_nobody_is_listed_as_that_and_drawn_nowhere(tmp_path: Path) -> None:
    spans = Spans()
    for effect in (1, 0):
        spans.note(fault(1, 2.0 + effect, "stall", 6.0, effect=effect))
    assert [(one.start_s, one.name) for one in spans.lasting(4.0, {})] == [(3.0, "stall")]
    assert not spans.tail.since(0).items
    assert sentence(said_of(fault(1, 3.0, "stall", effect=0))) == "fault: stall L1: found no process"
    taped(tmp_path / "run", simulated((*FAULTS, Fault("stall", int(2.2 * SECOND), learner=1, for_ns=SECOND))))
    recording = Recording(tmp_path / "run")
    said = [
        sentence(recording.said(event))
        for event in range(recording.count)
        if recording.column("kind")[event] == int(Kind.FAULT_INJECTED)
    ]
    assert said[:2] == ["fault: kill L1 for 1 s", "fault: stall L1: found no process"]
    assert [one.name for one in bands(recording.tape)] == ["kill L1", "stall L2", "slow L0"]


CUT = (Fault("cut", 6 * SECOND, learner=1, for_ns=6 * SECOND), Fault("slow", 3 * SECOND, 0, 2 * SECOND, factor=3.0))


def watched(records: list[Record]) -> Iterator[tuple[Spans, float, list[dict[str, Any]]]]:
    """What a page knows whenever the syncer has journalled something, and what the status says then."""
    spans, learners = Spans(), [{"learner": m, "state": "running", "healed": True, "acting": []} for m in range(3)]
    for record in records:
        spans.note(record)
        if record.kind in (Kind.LEARNER_JOINED, Kind.LEARNER_LOST):
            learners[record.peer - process_of(0)]["connected"] = record.kind == Kind.LEARNER_JOINED
            learners[record.peer - process_of(0)]["stepped"] = 1
        if record.kind == Kind.MERGED:
            yield spans, record.time_ns / SECOND, learners


def test_work_counts_when_it_was_done_and_what_is_not_reported_yet_is_said() -> None:
    records = simulated(CUT, CONFIG.set({"rounds": 150}))
    found, began_s = tables(records), next(r.time_ns for r in records if r.kind == Kind.ROUNDS_BEGAN) / SECOND
    tokens = next(r.tokens for r in records if r.kind == Kind.STEP_ENDED)
    looks: dict[str, int] = {"all": 0, "without": 0}
    for spans, now_s, learners in watched(records):
        if now_s - began_s < 1.0:
            continue
        shares = spans.shares(now_s, began_s, learners)
        window = round(max(began_s, now_s - WINDOW_S) * SECOND), round(now_s * SECOND)
        truth = shares_within(found, [window])[0]
        there = [m for m in range(3) if m not in shares.unheard]
        assert set(shares.unheard) <= {1} and shares.goodput is not None and shares.tokens_per_s is not None
        true = truth.useful_ns[there].sum() / truth.allocated_ns[there].sum()
        assert shares.goodput == pytest.approx(true, abs=0.06), (now_s, shares)
        assert shares.tokens_per_s == pytest.approx(true * len(there) * tokens / 0.1, rel=0.1), (now_s, shares)
        looks["without" if shares.unheard else "all"] += 1
    assert min(looks.values()) > 20, looks


def test_who_is_left_out_of_a_number_stands_below_it() -> None:
    status: dict[str, Any] = {"learners": [], "merges": 3, "rounds": 9}
    html = live_html(status, Shares(0.5, 123.0, {1: 6.2}), set())
    assert html.count("without L1: nothing heard for 6 s") == 2 and "contributed in the last 10 s" in html


def test_learners_that_were_removed_are_not_expected_for_a_quorum() -> None:
    one = {"state": "running", "connected": True, "healed": True, "counts": True}
    learners = [{**one, "learner": m} for m in range(3)] + [{"learner": 3, "state": "removed"}]
    status = {"learners": learners, "merges": 3, "rounds": 9, "quorum": 3}
    assert "3 of 3 there" in live_html(status, Shares(None, None, {}), set())


def test_what_lasts_reaches_from_its_start_or_the_windows_to_now() -> None:
    spans, told = Spans(), {"slow": 1, "cut": 2}
    spans.note(joined(0, 0.0))
    for kind, number in told.items():
        spans.note(fault(0, 1.0 + number, kind, 2.0**62 / SECOND, fault=number, effect=1))
    spans.note(fault(1, 4.0, "kill", 5.0, fault=3, effect=1))
    spans.note(rec(Kind.PROCESS_ENDED, 4.1, SUPERVISOR, peer=process_of(1), value=1, reason="SIGKILL"))
    seen = {one.name or one.what: (one.process, one.start_s, one.end_s) for one in spans.lasting(6.0, {0: 2.5})}
    assert seen == {
        "slow": (process_of(0), 2.0, 6.0), "cut": (process_of(0), 3.0, 6.0), "down: kill": (process_of(1), 4.0, 6.0),
        "nothing heard yet": (process_of(0), 3.5, 6.0),
    }  # fmt: skip
    assert {one.start_s for one in spans.lasting(60.0, {})} == {50.0}
    assert not spans.tail.since(0).items
    spans.note(joined(1, 60.0, 2))
    spans.note(rec(Kind.FAULT_ENDED, 61.0, SUPERVISOR, peer=process_of(0), reason="cut", detail={"fault": 2}))
    over = [(one.what, one.start_s, one.end_s) for one in spans.tail.since(0).items]
    assert over == [("fault: kill", 4.0, 60.0), ("fault: cut", 3.0, 61.0)]
    assert [one.name for one in spans.lasting(62.0, {})] == ["slow"]
    spans.look([{"learner": 0, "state": "running", "acting": []}], 63.0)
    assert not spans.lasting(64.0, {})


def test_what_lasted_before_the_page_came_is_drawn_from_its_left_edge() -> None:
    spans = Spans()
    learners = [
        {"learner": 0, "state": "running", "acting": ["slow"]}, {"learner": 1, "state": "failed", "acting": []}
    ]  # fmt: skip
    spans.look(learners, 30.0)
    assert [(one.name, one.start_s) for one in spans.lasting(31.0, {})] == [("slow", 21.0), ("down", 21.0)]
    spans.look([{**one, "state": "running", "connected": True, "acting": []} for one in learners], 33.0)
    assert not spans.lasting(34.0, {})


def test_a_range_follows_its_data_until_somebody_zooms_and_after_a_reset() -> None:
    following = Following()
    for high in (10.0, 20.0):
        following.follow(0.0, high)
        assert (following.range.start, following.range.end) == (-0.05 * high, 1.05 * high)
    reset = following.range.reset_start, following.range.reset_end
    following.range.update(start=3.0, end=4.0)
    following.follow(0.0, 40.0)
    assert (following.range.start, following.range.end) == (3.0, 4.0)
    assert (following.range.reset_start, following.range.reset_end) == reset
    following.range.update(start=reset[0], end=reset[1])
    following.follow(0.0, 40.0)
    assert following.range.end == 42.0


def test_injected_sleep_is_drawn_apart_from_the_step() -> None:
    spans = Spans()
    times = {"start_ns": 0, "end_ns": 3 * SECOND, "injected_ns": 2 * SECOND, "waited_ns": 0}
    spans.note(rec(Kind.STEP_ENDED, 3.0, process_of(0), step=1, detail=times))
    spans.flush(9.0)
    boxes = [(one.start_s, one.end_s, one.what) for one in spans.tail.since(0).items]
    assert boxes == [(0.0, 1.0, "step"), (1.0, 3.0, "injected into step")]
