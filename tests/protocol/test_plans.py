"""The plan of a run's faults: told by the header of its tape, and taken up where the journal ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.simulate.worlds import SECOND, config_of
from workbench.config import ConfigError
from workbench.protocol.chaos import parse_chaos
from workbench.protocol.faults import Fault, FaultPlan, ended, injected
from workbench.protocol.plans import (
    InHand,
    facts_of,
    has_passed,
    horizon_s,
    numbered,
    plan_of,
    rest_line,
    rest_of,
    skipped_line,
    without,
)
from workbench.protocol.records import SUPERVISOR, SYNCER, Kind, Record, process_of
from workbench.protocol.scenario import load_faults

CONFIG = config_of(learners=4, seed=3, rounds=400)
SCENARIO = (
    '[[fault]]\nkind = "kill"\nat_merge = 30\nlearner = 1\n'
    '[[fault]]\nkind = "slow"\nat_s = 2\nlearner = 0\nevery_s = 4\ntimes = 3\n'
)


def record(kind: Kind, time_s: float, **columns: Any) -> Record:
    return Record(kind, SUPERVISOR, 1, 1, int(time_s * SECOND), (), **columns)


def struck(fault: Fault, number: int, at_s: float, effect: bool = True) -> Record:
    return record(Kind.FAULT_INJECTED, at_s, **injected(fault, number, int(at_s * SECOND), effect))


def began(at_s: float) -> Record:
    return Record(Kind.ROUNDS_BEGAN, SYNCER, 1, 1, int(at_s * SECOND), ())


def test_texts_tell_a_plan_and_give_it_back(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO)
    scripted = load_faults(tmp_path / "s.toml", CONFIG)
    for clock, horizon in (("real", None), ("virtual", horizon_s(CONFIG))):
        plan = scripted + parse_chaos("mtbi=40s,kinds=kill,loss", CONFIG, horizon)
        facts = facts_of(plan, CONFIG, clock)
        assert facts == {"chaos": plan.chaos, "scenario": SCENARIO}
        again = plan_of(facts, CONFIG, clock)
        assert again.faults == numbered(plan).faults
        assert [fault.planned for fault in again.faults] == list(range(1, len(plan.faults) + 1))


def test_faults_that_no_text_gives_stand_in_the_header_themselves() -> None:
    plan = FaultPlan((Fault("loss", 5, 1, 7, share=0.5), Fault("kill_syncer", 9)))
    facts = facts_of(plan, CONFIG, "virtual")
    assert facts["faults"][1] == {"kind": "kill_syncer", "at_ns": 9}
    assert plan_of(facts, CONFIG, "virtual").faults == numbered(plan).faults


@pytest.mark.parametrize(
    "facts",
    [{"faults": 3}, {"faults": [{"kind": 7}]}, {"scenario": "[["}, {"scenario": "fault = 3"}, {"chaos": "mtbi"}],
)
def test_a_header_that_tells_no_plan_is_refused_in_a_line(facts: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="the plan of faults in the header cannot be read"):
        plan_of(facts, CONFIG, "real")


def test_what_struck_is_done_and_the_rest_keeps_its_time() -> None:
    plan = numbered(FaultPlan((Fault("kill", SECOND, 0, SECOND), Fault("stall", 9 * SECOND, 1, SECOND))))
    rest = rest_of(plan, [began(0.5), struck(plan.faults[0], 4, 1.5)], CONFIG, "real")
    assert (rest.struck, rest.to_come, rest.acting, rest.began_ns) == (4, [plan.faults[1]], [], SECOND // 2)


def test_a_fault_that_repeats_has_the_times_that_are_left() -> None:
    fault = Fault("kill", 2 * SECOND, 0, SECOND, every_ns=4 * SECOND, times=4, at_merge=3)
    plan = numbered(FaultPlan((fault,)))
    records = [began(1.0), struck(plan.faults[0], 1, 3.0), struck(plan.faults[0], 2, 7.0, effect=False)]
    for clock, at_s in (("real", 10), ("virtual", 11)):
        (left,) = rest_of(plan, records, CONFIG, clock).to_come
        assert (left.at_ns, left.times, left.is_tied, left.planned) == (at_s * SECOND, 2, False, 1)
    records += [struck(plan.faults[0], 3, 11.0), struck(plan.faults[0], 4, 15.0)]
    assert not rest_of(plan, records, CONFIG, "real").to_come


def test_one_without_an_end_has_always_one_to_come() -> None:
    plan = numbered(FaultPlan((Fault("kill", 0, 0, SECOND, every_ns=SECOND, times=0),)))
    records = [struck(plan.faults[0], number, number) for number in range(1, 6)]
    (left,) = rest_of(plan, records, CONFIG, "virtual").to_come
    assert (left.at_ns, left.times) == (6 * SECOND, 0)


def test_what_lasts_and_was_not_over_acts_on_with_what_it_drew() -> None:
    loss = Fault("loss", SECOND, 2, 0, share=0.5, seed=11)
    asked = Fault("cut", 2 * SECOND, 1, 5 * SECOND)
    over = Fault("delay", 2 * SECOND, 3, SECOND, delay_ns=5)
    plan = numbered(FaultPlan((loss,)))
    done = record(Kind.FAULT_ENDED, 3.0, **ended(over, 3, 2 * SECOND, 3 * SECOND, "over"))
    gone = Fault("cut", 2 * SECOND, 0)
    records = [struck(plan.faults[0], 1, 1.0), struck(asked, 2, 2.0), struck(over, 3, 2.0), done]
    rest = rest_of(plan, [*records, struck(gone, 4, 2.5, effect=False)], CONFIG, "virtual")
    first, second = rest.acting
    assert first == InHand(1, plan.faults[0], SECOND)
    assert (second.number, second.fault.kind, second.fault.for_ns) == (2, "cut", 5 * SECOND)
    assert second.fault.seed >= 0 and not rest.to_come


def test_a_learner_that_has_not_started_late_yet_is_waited_for() -> None:
    plan = numbered(FaultPlan((Fault("late", 0, 1, 9 * SECOND), Fault("late", 0, 2, SECOND))))
    records = [struck(plan.faults[0], 1, 0.0), struck(plan.faults[1], 2, 0.0)]
    records.append(record(Kind.PROCESS_STARTED, 1.0, peer=process_of(2)))
    rest = rest_of(plan, records, CONFIG, "real")
    assert [hand.fault.learner for hand in rest.acting] == [1] and not rest.to_come


def test_without_its_plan_nothing_is_to_come_and_what_lasted_is_over() -> None:
    plan = numbered(FaultPlan((Fault("cut", SECOND, 2), Fault("kill", 9 * SECOND, 0))))
    rest = without(rest_of(plan, [struck(plan.faults[0], 1, 1.0)], CONFIG, "real"))
    assert not rest.to_come and [hand.fault.for_ns for hand in rest.acting] == [1]


def test_what_has_passed_while_nothing_ran() -> None:
    assert has_passed(Fault("kill", 5, 0), 5, 0, -1) and not has_passed(Fault("kill", 6, 0), 5, 0, -1)
    assert has_passed(Fault("kill", 0, 0, at_merge=3), 0, 3, -1) and not has_passed(
        Fault("kill", 0, 0, at_merge=4), 9, 3, 9
    )
    assert has_passed(Fault("kill", 0, 0, at_round=3), 0, 0, 3) and not has_passed(
        Fault("kill", 0, 0, at_round=4), 9, 9, 3
    )
    assert not has_passed(Fault("late", 0, 1, 5), 9, 9, 9)


def test_both_lines_say_what_there_is_and_nothing_where_there_is_nothing() -> None:
    assert rest_line(rest_of(FaultPlan(), [], CONFIG, "real")) == "" and skipped_line([]) == ""
    plan = numbered(FaultPlan((Fault("kill", 0, 0), Fault("kill", 0, 1))))
    assert "2 to come" in rest_line(rest_of(plan, [], CONFIG, "real"))
    assert skipped_line([f"kill of L{m} at 3 s" for m in range(6)]).endswith("kill of L3 at 3 s and 2 more")
