from __future__ import annotations

import math

import numpy as np
import pytest

from tests.analysis.runs import began, ended, fault, healed, joined, lost, rec, simulated, step
from workbench.analysis.arrays.tables import Tables
from workbench.analysis.arrays.time_shares import CAUSES, TimeShares, time_shares, uptime
from workbench.analysis.from_records import tables
from workbench.protocol.records import SUPERVISOR, Kind, Record, process_of


def steps(learner: int, start: float, end: float, took: float, gap: float, first: int = 1) -> list[Record]:
    count = round((end - start) / (took + gap))
    return [step(learner, start + i * (took + gap), start + i * (took + gap) + took, first + i) for i in range(count)]


def seconds(shares: TimeShares, learner: int) -> dict[str, float]:
    found = dict(zip(CAUSES, (shares.badput_ns[learner] * 1e-9).tolist(), strict=True))
    return {cause: round(value, 6) for cause, value in found.items() if value}


def test_vector_of_the_definition() -> None:
    """L0 covers 9.0 s without a gap over 0.1 s, L1 3.6 s, dies at 4, steps again from 7, 2.5 s covered."""
    records = [
        joined(0), joined(1), began(), *steps(0, 0, 10, 0.9, 0.1), *steps(1, 0, 4, 0.9, 0.1),
        lost(1, 4.0), joined(1, 6.5, number=2), *steps(1, 7, 10, 2.5, 0.5, first=5), ended(10),
    ]  # fmt: skip
    shares = time_shares(tables(records))
    assert shares.goodput == pytest.approx(0.755) and uptime(tables(records)) == 1.0
    assert shares.allocated_ns.tolist() == [10e9, 10e9]
    assert seconds(shares, 0) == {"overhead": 1.0}
    assert seconds(shares, 1) == {"down": 2.5, "starting": 0.5, "overhead": 0.8, "lost": 0.1}
    assert shares.goodput + sum(shares.badput.values()) == pytest.approx(1.0)


def test_injected_time_and_waiting_are_not_useful_wherever_they_stand() -> None:
    inside = [joined(0), began(), step(0, 0, 4, injected_s=1.0, waited_s=0.5), ended(4)]
    before = [joined(0), began(), step(0, 0, 1, 1), step(0, 3, 4, 2, waited_s=1.5), ended(4)]
    assert seconds(time_shares(tables(inside)), 0) == {"waiting": 0.5, "injected": 1.0}
    assert seconds(time_shares(tables(before)), 0) == {"waiting": 1.5, "overhead": 0.5}


def test_a_stopped_process_is_down_in_the_middle_of_a_step() -> None:
    records = [joined(0), began(), fault(0, 1, "stall", 3), step(0, 0, 4), ended(4)]
    shares = time_shares(tables(records))
    assert seconds(shares, 0) == {"down": 2.0} and shares.useful_ns[0] == 2e9
    let_go = [joined(0), began(), fault(0, 1, "stop"), fault(0, 2, "cont"), step(0, 0, 4), ended(4)]
    assert seconds(time_shares(tables(let_go)), 0) == {"down": 1.0}
    no_effect = [joined(0), began(), fault(0, 1, "stall", 3, effect=0), step(0, 0, 4), ended(4)]
    assert seconds(time_shares(tables(no_effect)), 0) == {}


def test_rolled_back_steps_are_lost_and_removal_ends_the_allocation() -> None:
    records = [
        joined(0), joined(1), began(), step(0, 0, 1, 1), step(0, 1, 2, 2), step(0, 2, 3, 2, epoch=1),
        step(1, 0, 2, 1), lost(1, 2, "removed"), ended(3),
    ]  # fmt: skip
    shares = time_shares(tables(records))
    assert shares.allocated_ns.tolist() == [3e9, 2e9]
    assert seconds(shares, 0) == {"lost": 1.0} and shares.useful_ns.tolist() == [2e9, 2e9]


def test_start_and_state_transfer_have_names() -> None:
    started = rec(Kind.PROCESS_STARTED, 2, SUPERVISOR, peer=process_of(0), value=2)
    dead = rec(Kind.PROCESS_ENDED, 1.5, SUPERVISOR, peer=process_of(0), value=1, reason="SIGKILL")
    adopted = rec(Kind.STATE_ADOPTED, 4.5, process_of(0), reason="peer")
    records = [
        joined(0), began(1), step(0, 0, 1), dead, started, joined(0, 3, 2), adopted, step(0, 5, 6, 2), ended(6),
    ]  # fmt: skip
    assert seconds(time_shares(tables(records)), 0) == {"down": 0.5, "starting": 1.5, "recovering": 1.5, "lost": 0.5}


def test_no_rounds_no_number() -> None:
    assert math.isnan(time_shares(tables([])).goodput) and math.isnan(uptime(tables([])))


def test_uptime_reaches_two_median_steps_beyond_a_step() -> None:
    assert uptime(tables([joined(0), began(), *steps(0, 0, 4, 1, 0), ended(10)])) == pytest.approx(0.6)
    both = [joined(0), joined(1), began(), step(0, 0, 1), step(1, 8, 10), ended(10)]
    assert uptime(tables(both)) == pytest.approx(0.5)


def test_shares_of_a_run_with_faults_add_up_and_match_a_walk_over_its_milliseconds() -> None:
    found = tables(simulated())
    shares = time_shares(found)
    assert shares.goodput + sum(shares.badput.values()) == pytest.approx(1.0)
    assert (shares.badput_ns >= -1).all()
    milliseconds = _walk(found)
    assert shares.useful_ns * 1e-6 == pytest.approx(milliseconds, rel=0.01)
    assert shares.badput["down"] > 0 and shares.badput["injected"] > 0 and shares.badput["lost"] > 0


def _walk(found: Tables) -> list[float]:
    """Milliseconds inside steps and outside the stall, less what was injected."""
    events, steps = found["events"], found["steps"]
    closed = int(events["time_ns"][events["kind"] == Kind.RUN_ENDED][0])
    began_ns = int(events["time_ns"][events["kind"] == Kind.ROUNDS_BEGAN][0])
    result = []
    for learner in range(3):
        busy = np.zeros(closed // 10**6 + 1, bool)
        mine = steps["learner"] == learner
        for start, end in zip(steps["start_ns"][mine], steps["end_ns"][mine], strict=True):
            busy[start // 10**6 : end // 10**6] = True
        busy[: began_ns // 10**6] = False
        if learner == 2:
            busy[5000:6000] = False
        result.append(busy.sum() - float(np.maximum(steps["injected_ns"][mine], 0).sum()) * 1e-6)
    return result


def test_healed_alone_says_nothing_of_a_learner_that_never_joined() -> None:
    assert time_shares(tables([began(), healed(0), ended(1)])).allocated_ns.tolist() == [0.0]
