from __future__ import annotations

import numpy as np
import pytest

from tests.analysis.runs import began, ended, joined, lost, merged, rec, simulated, step
from workbench.analysis.arrays.course import edges_ns, participation_course, shares_course, useful_course
from workbench.analysis.arrays.participation import participation
from workbench.analysis.arrays.spread import spread
from workbench.analysis.arrays.tables import run_span
from workbench.analysis.arrays.time_shares import CAUSES, time_shares
from workbench.analysis.courses import goodput_over_time
from workbench.analysis.from_records import tables
from workbench.protocol.records import Kind


def test_a_percentile_is_a_value_that_occurred() -> None:
    assert spread(np.arange(1, 101)) == {"count": 100, "median": 50.5, "p95": 95.0, "max": 100.0}
    assert spread(np.array([7])) == {"count": 1, "median": 7.0, "p95": 7.0, "max": 7.0}
    assert spread(np.array([np.nan])) == {"count": 0, "median": None, "p95": None, "max": None}


def test_useful_time_by_hand() -> None:
    found = tables([
        began(0), joined(0), joined(1), step(0, 0, 1), step(0, 1, 3, 2, injected_s=1), step(1, 2, 3), ended(4),
    ])  # fmt: skip
    assert edges_ns(found, 4).tolist() == [0, 1e9, 2e9, 3e9, 4e9]
    assert useful_course(found, 4).tolist() == [[1, 0.5, 0.5, 0], [0, 0, 1, 0]]


def test_a_run_is_closed_when_its_learners_are_told_to_leave() -> None:
    records = [began(1), joined(0), joined(1), merged(1, 3, 1, (0,)), ended(9)]
    assert run_span(tables(records)) == (10**9, 9 * 10**9)
    assert run_span(tables([*records[:-1], lost(0, 4, "ended"), lost(1, 8, "ended"), ended(9)])) == (10**9, 4 * 10**9)
    given_up = rec(Kind.ROUND_ABORTED, 2.9, round=2, fragment=1, reason="run_ended")
    assert run_span(tables([*records[:-2], given_up, records[-2], lost(0, 4, "ended"), ended(9)])) == (10**9, 3 * 10**9)
    assert run_span(tables(records[:-1])) == (10**9, 3 * 10**9)


def test_useful_time_over_the_run_adds_up_to_that_of_goodput() -> None:
    found = tables(simulated())
    shares, course, edges = time_shares(found), useful_course(found, 7), edges_ns(found, 7)
    assert (course <= 1).all()
    useful_ns = course.sum(1) * (edges[1] - edges[0])
    assert useful_ns.tolist() == pytest.approx(shares.useful_ns.tolist(), rel=1e-3)


def test_badput_over_the_run_adds_up_to_that_of_goodput() -> None:
    found = tables(simulated())
    shares, (useful_s, badput_s) = time_shares(found), shares_course(found, 9)
    assert useful_s.sum() * 1e9 == pytest.approx(shares.useful_ns.sum())
    assert (badput_s.sum(0) * 1e9).tolist() == pytest.approx(shares.badput_ns.sum(0).tolist(), abs=1e3)
    assert (badput_s.sum(0)[[CAUSES.index(cause) for cause in ("down", "injected")]] > 0.4).all()


def test_badput_over_time_by_hand() -> None:
    found = tables([
        began(0), joined(0), joined(1), step(0, 0, 1), step(0, 1, 3, 2, injected_s=1), step(1, 2, 3), ended(4),
    ])  # fmt: skip
    told = goodput_over_time(found, bins=4)
    assert told["allocated_s"].values.tolist() == [2, 2, 2, 2]
    assert told["goodput"].values.tolist() == [0.5, 0.25, 0.75, 0]
    assert told["badput"].sel(cause="injected").values.tolist() == [0, 0.25, 0.25, 0]
    assert told["start_s"].values.tolist() == [0, 1, 2, 3]
    assert (told["goodput"] + told["badput"].sum("cause")).values.tolist() == [1, 1, 1, 1]


def test_participation_by_hand() -> None:
    found = tables([began(0), joined(0), joined(1), merged(1, 1, 1, (0, 1)), merged(2, 3.5, 1, (1,)), ended(4)])
    told = participation(found)
    told.expected[:] = [[True, True], [True, False]]
    per_learner, share, contributors = participation_course(found, told, 2)
    assert per_learner[:, 0].tolist() == [1, 1] and per_learner[0, 1] == 0 and np.isnan(per_learner[1, 1])
    assert share.tolist() == [1, 0]
    assert contributors.tolist() == [2, 1]
    assert np.isnan(participation_course(found, told, 8)[2][1])  # no merge in that part


def test_participation_over_the_run_adds_up() -> None:
    found = tables(simulated())
    told = participation(found)
    *_, contributors = participation_course(found, told, 1)
    assert contributors[0] == pytest.approx(told.included.sum() / len(told.included))
