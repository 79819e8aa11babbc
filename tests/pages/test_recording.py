from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.analysis.runs import FAULTS, rec, simulated
from tests.analysis.tapes import taped
from workbench.pages import exports
from workbench.pages.addresses import Address
from workbench.pages.courses import POINTS_MAX, Course, Point, recorded_points, recorded_within
from workbench.pages.recording import Recording
from workbench.pages.spans import Spans
from workbench.pages.vitals import then_vitals
from workbench.protocol.records import SYNCER, Kind, process_of
from workbench.tape import TapeError
from workbench.views.learner_cells import then_cell
from workbench.views.states import STATES
from workbench.views.tape_card import tape_card


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("runs") / "faulty"
    taped(folder, simulated(FAULTS))
    return Recording(folder)


def test_stepping_goes_there_and_back_and_stays_at_the_ends(recording: Recording) -> None:
    kinds = recording.tape["events"].dataset["kind"].values
    for by, kind in (("merge", Kind.MERGED), ("round", Kind.ROUND_OPENED), ("fault", Kind.FAULT_INJECTED)):
        places, at = [], -1
        while (following := recording.step(at, by, forward=True)) != at:
            places.append(following)
            at = following
        assert places == np.flatnonzero(kinds == int(kind)).tolist() and len(places) == recording.numbers()[by] > 0
        assert [recording.step(b, by, forward=False) for b in places[1:]] == places[:-1]
    assert recording.step(0, "event", forward=False) == 0
    assert recording.step(recording.count - 1, "event", forward=True) == recording.count - 1


def test_a_look_agrees_with_the_tape(recording: Recording) -> None:
    tape = recording.tape
    event = int(tape["merges"].dataset["event"].values[5])
    look = recording.look(event)
    assert str(look.why) == str(tape.wb.why(5))
    assert look.counts == (len(tape.wb.past(event)), len(tape.wb.future(event)), len(tape.wb.concurrent(event)))
    assert [one for one, rel in look.rows if rel == "now"] == [event]
    assert all((one in tape.wb.past(event)) == (rel == "past") for one, rel in look.rows if one != event)
    cells = [then_cell(one, look.moment) for one in look.moment.learners]
    assert len(cells) == len(tape.wb.learners) and all(cell["sign"] == STATES[cell["word"]] for cell in cells)


def test_a_killed_learner_is_down_at_the_cursor(recording: Recording) -> None:
    words = set()
    for event in range(0, recording.count, max(1, recording.count // 150)):
        moment = recording.tape.wb.at(event)
        words |= {then_cell(one, moment)["word"] for one in moment.learners}
    assert {"training", "down"} <= words, words


def test_time_and_cursor_belong_together(recording: Recording) -> None:
    assert recording.at_time(-1e9) == 0 and recording.at_time(1e9) == recording.count - 1
    middle = recording.count // 2
    assert recording.at_time(float(recording.time_s[: middle + 1].max())) >= middle


def test_a_damaged_tape_is_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "config.toml").write_text("learners = 2\n", encoding="utf-8")
    (folder / "journal").write_bytes(b"no journal at all")
    with pytest.raises(TapeError) as caught:
        Recording(folder)
    assert "\n" not in str(caught.value) and "journal" in str(caught.value)


def test_the_course_keeps_its_extremes_and_its_bound() -> None:
    course = Course()
    for second in range(3 * POINTS_MAX):
        loss = 9.0 if second == 1234 else 2.0
        one = {"loss": loss, "connected": True}
        course.look({"elapsed_s": float(second), "learners": [one, {"loss": 2.0, "connected": True}, {"loss": None}]})
    assert len(course.points) <= POINTS_MAX and course.changes > 0
    assert max(point.most for point in course.points) == 9.0
    assert min(point.least for point in course.points) == 2.0


def test_the_mean_loss_does_not_jump_when_learners_leave() -> None:
    course = Course()
    for there in (4, 4, 2, 2):
        learners = [{"loss": 2.0, "connected": m < there} for m in range(4)]
        course.look({"elapsed_s": 1.0, "learners": learners})
    assert [point.loss for point in course.points] == [2.0] * 4


def test_a_course_begins_with_what_the_tape_knows(recording: Recording) -> None:
    points = recorded_points(recording.tape)
    course = Course()
    course.look({"elapsed_s": 1e6, "learners": [{"loss": 1.0, "connected": True}]})
    course.begin(points)
    times = [point.time_s for point in course.points]
    assert times == sorted(times) and times[-1] == 1e6 and len(times) > 10


def test_the_past_of_a_course_is_the_mean_over_learners_as_looks_would_have_found_it(recording: Recording) -> None:
    found = [point for point, evaluated in recorded_points(recording.tape) if not evaluated]
    steps, whole = recording.tape["steps"].dataset, [point for point in found if np.isfinite(point.loss)]
    ended_s, loss, learner = steps["end_ns"].values / 1e9, steps["loss"].values, steps["learner"].values
    before_faults = [point for point in whole if 1.2 < point.time_s < 1.9]
    assert len(before_faults) > 2
    for point in before_faults:
        last = [loss[(learner == m) & (ended_s <= point.time_s)][-1] for m in range(3)]
        assert (point.loss, point.least, point.most) == pytest.approx((np.mean(last), min(last), max(last)))


def test_what_nobody_told_is_a_hole_in_the_course() -> None:
    course = Course()
    for time_s in (1.0, 1.2, 9.0, 9.2):
        course.look({"elapsed_s": time_s, "learners": [{"loss": time_s, "connected": True}]})
    losses = [point.loss for point in course.points]
    assert np.isnan(losses).tolist() == [False, False, True, True, False, False]
    assert [(point.time_s, point.most - point.least) for point in course.points[2:4]] == [(1.2, 0.0), (9.0, 0.0)]
    course.begin([(Point(0.2 * number, 0.5), False) for number in range(5)])
    course.begin([(Point(0.2 * number, 0.5), False) for number in range(40)])
    times = [point.time_s for point in course.points if np.isfinite(point.loss)]
    assert times == pytest.approx([*(0.2 * number for number in range(5)), 1.0, 1.2, 9.0, 9.2])
    late = Course()
    late.look({"elapsed_s": 5.0, "learners": [{"loss": 1.0, "connected": True}]})
    for reached in (10, 24):
        late.begin([(Point(0.2 * number, 0.5), False) for number in range(reached)])
        assert any(np.isnan(point.loss) for point in late.points) == (reached == 10)


def test_points_far_apart_because_there_are_many_are_no_holes() -> None:
    course = Course()
    for second in range(3 * POINTS_MAX):
        course.look({"elapsed_s": float(second), "learners": [{"loss": 2.0, "connected": True}]})
    course.fill([])
    course.begin([])
    assert not any(np.isnan(point.loss) for point in course.points)
    course = Course()
    course.begin([(Point(9.0 * number, 2.0), False) for number in range(400)])
    course.fill([])
    assert not any(np.isnan(point.loss) for point in course.points)


def test_a_hole_is_filled_with_what_the_tape_knows_and_asked_about_once(recording: Recording) -> None:
    course, known = Course(), [p for p, evaluated in recorded_points(recording.tape) if not evaluated]
    ended_s = [point.time_s for point in known if np.isfinite(point.loss)]
    low, high = ended_s[0] + 0.1, ended_s[-1] + 6.0
    for time_s in (low, high, high + 9.0):
        course.look({"elapsed_s": time_s, "learners": [{"loss": 2.0, "connected": True}]})
    holes = course.holes()
    assert holes == [(low, high), (high, high + 9.0)] and course.holes() == []
    found = recorded_within(recording.tape, holes)
    inside = [point for point in found if ended_s[0] < point.time_s < ended_s[-1]]
    assert len(inside) > 10 and max(point.time_s for point in found) <= ended_s[-1] + 1e-9
    changes = course.changes
    course.fill(found)
    times = [point.time_s for point in course.points]
    assert times == sorted(times) and {point.time_s for point in inside} <= set(times) and course.changes > changes
    assert course.holes() == [(found[-1].time_s, high)], "what is left is shorter, and the other was asked about"


def step_record(start_ms: int, end_ms: int, injected_ms: int = 0) -> object:
    detail = {
        "start_ns": start_ms * 10**6, "end_ns": end_ms * 10**6, "injected_ns": injected_ms * 10**6, "waited_ns": 0,
        "batch": 1, "accumulation": 1,
    }  # fmt: skip
    return rec(Kind.STEP_ENDED, end_ms / 1e3, process_of(0), step=1, value=2.0, detail=detail)


def test_adjacent_steps_are_one_box_and_gaps_stay_white() -> None:
    spans = Spans()
    for start, end in ((0, 50), (50, 100), (101, 150), (400, 450), (450, 500)):
        spans.note(step_record(start, end))  # type: ignore[arg-type]
    spans.flush(10.0)
    boxes = spans.tail.since(0).items
    assert [(box.start_s, box.end_s, box.what) for box in boxes] == [(0.0, 0.15, "3 steps"), (0.4, 0.5, "2 steps")]


def test_goodput_is_useful_over_allocated_time() -> None:
    spans = Spans()
    spans.note(rec(Kind.LEARNER_JOINED, 0.0, SYNCER, peer=process_of(0), value=1.0))
    spans.note(step_record(0, 1000, 250))  # type: ignore[arg-type]
    one = {"learner": 0, "state": "running", "connected": True, "healed": True, "stepped": 1}
    assert spans.shares(2.0, 0.0, [one]).goodput == pytest.approx(0.75 / 1.0)
    for known_idle in ({"stalled": True}, {"state": "stopped"}, {"state": "waiting", "connected": False}):
        assert spans.shares(2.0, 0.0, [{**one, **known_idle}]).goodput == pytest.approx(0.75 / 2.0)
    assert spans.shares(2.0, 0.0, []) == spans.shares(2.0, None, [one]) == (None, None, {})


def test_tokens_are_told_when_they_have_been_counted(recording: Recording) -> None:
    fresh = Recording(recording.path)
    middle = fresh.count // 2
    assert fresh.tokens(middle) is None and "counting tokens" in then_vitals(fresh.look(middle).moment, None)
    fresh.count_tokens()
    for event in (0, middle, fresh.count - 1):
        assert fresh.tokens(event) == recording.tape.wb.at(event).ledger
    assert "of tokens processed" in then_vitals(fresh.look(middle).moment, fresh.tokens(middle))


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.8, 1.0])
def test_past_and_future_of_a_look_are_those_of_the_tape(recording: Recording, part: float) -> None:
    event = round(part * (recording.count - 1))
    look, wb = recording.look(event, show="everything"), recording.tape.wb
    past, future = wb.past(event).mask(), wb.future(event).mask()
    assert look.counts == (past.sum(), future.sum(), recording.count - 1 - past.sum() - future.sum())
    words = {one: "past" if past[one] else "future" if future[one] else "beside" for one, _ in look.rows}
    assert dict(look.rows) == words | {event: "now"}
    process = recording.column("process")
    assert [q for q, *_ in look.lanes] == np.unique(process).tolist()
    for q, until_s, from_s in look.lanes:
        mine = process == q
        assert until_s == recording.time_s[mine & past].max(initial=-np.inf)
        assert from_s == recording.time_s[mine & future].min(initial=np.inf)


def test_a_report_says_in_words_what_everybody_was_and_counts_events_as_the_page_does(recording: Recording) -> None:
    states = set()
    for event in range(0, recording.count, 7):
        html = exports._at_cursor(recording, Address("replay", event=event))
        assert f"At event {event:,} (of events 0 to {recording.count - 1:,}), " in html
        assert not re.search(r"\b[A-Z]{4,}\b|, g \d|\bn \d|versions? \d+ \d", html.split("<ul>")[1]), html
        states |= set(re.findall(r"round \d+ of fragment \d+ ([a-z :]+)", html))
    assert {"waits for its quorum", "pulls contributions"} <= states
    learner = re.search(r"L0: .*", repr(recording.tape.wb.at(recording.count // 2)))
    assert learner is not None and re.search(r"own step \d+, global step \d+, loss \S+ nat per byte", learner[0])
    assert f"{recording.count:,}, numbered 0 to {recording.count - 1:,}" in tape_card(recording.tape)
