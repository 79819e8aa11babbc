from __future__ import annotations

import pytest

from tests.analysis.runs import CONFIG, FAULTS, SECOND, began, ended, fault, joined, merged, rec, simulated
from workbench.analysis.arrays import incidents
from workbench.analysis.arrays.fault_effects import fault_effects
from workbench.analysis.arrays.tables import run_span
from workbench.analysis.from_records import tables
from workbench.protocol.faults import Fault
from workbench.protocol.records import SUPERVISOR, SYNCER, Kind, Record, process_of


def test_what_came_of_each_fault_by_hand() -> None:
    merges = [merged(t, t, t, (0, 1) if t in (1, 2, 6) else (0,)) for t in range(1, 9)]
    struck = [
        fault(1, 2.5, "kill", 4.0, effect=1), fault(0, 3.5, "stall", 4.5, effect=1),
        fault(1, 3.6, "kill", 3.6, effect=0), fault(1, 6.5, "cut", 7.0, effect=1),
        fault(0, 6.6, "kill", 2.0**62 / SECOND, effect=1),
        rec(Kind.FAULT_INJECTED, 6.7, SUPERVISOR, peer=SYNCER, reason="kill_syncer", detail={"until_ns": 7 * SECOND}),
    ]  # fmt: skip
    records = sorted([began(0), joined(0), joined(1), *merges, *struck, ended(9)], key=lambda r: r.time_ns)
    kill, stall, nothing, cut, last, syncer = fault_effects(tables(records))
    assert kill == {
        "time_s": 2.5, "kind": "kill", "learner": 1, "for_s": 1.5, "effect": True, "skipped": False, "merges_missed": 3,
        "merged_again_s": 6.0,
    }  # fmt: skip
    assert (stall["merges_missed"], stall["merged_again_s"]) == (0, 5.0)
    assert nothing["effect"] is False and "merges_missed" not in nothing
    assert (cut["merges_missed"], cut["merged_again_s"]) == (2, None)
    assert (last["for_s"], last["merged_again_s"]) == (None, None), "what it had sent is merged, it is not back"
    assert syncer["learner"] is None and syncer["without_merge_s"] == pytest.approx(1.0)


def test_faults_of_a_run_are_all_there() -> None:
    found, start_s = fault_effects(tables(simulated())), run_span(tables(simulated()))[0] / SECOND
    assert [(row["kind"], row["learner"], row["for_s"]) for row in found] == [
        (f.kind, f.learner, f.for_ns / SECOND) for f in FAULTS
    ]
    assert [row["time_s"] for row in found] == pytest.approx([f.at_ns / SECOND - start_s for f in FAULTS])
    kill, stall, slow = found
    assert kill["merges_missed"] > 5 and 3 < kill["merged_again_s"] < 4
    assert stall["merges_missed"] > 5
    assert slow["effect"]


def test_what_the_syncer_reports_by_hand() -> None:
    def starved(learner: int, time_s: float, causes: dict[str, int]) -> Record:
        cause = max(causes, key=lambda name: causes[name])
        detail = {"causes": causes, "remedy": f"against {cause}"}
        steps, peer = sum(causes.values()), process_of(learner)
        return rec(Kind.LEARNER_STARVED, time_s, peer=peer, reason=cause, steps=steps, detail=detail)

    found = tables([
        began(0), joined(0), joined(1), starved(1, 2, {"late": 4}), starved(1, 3, {"not_fresh": 9, "late": 1}),
        starved(0, 3, {"late": 5}), rec(Kind.LEARNER_STALLED, 4, peer=process_of(1), value=1.0),
        rec(Kind.QUORUM_LOST, 5, value=1, steps=2, detail={"missing": ["L1"]}),
        rec(Kind.QUORUM_REGAINED, 6, value=2, steps=2),
        rec(Kind.QUORUM_LOST, 8, value=0, steps=2), rec(Kind.SELF_STOPPED, 8.5, value=0.7), ended(9),
    ])  # fmt: skip
    first, second = incidents.starved(found)
    assert (first["learner"], first["rounds_missed"], first["cause"], first["remedy"]) == (0, 5, "late", "against late")
    assert second == {
        "learner": 1, "reports": 2, "rounds_missed": 14, "first_s": 2.0, "cause": "not_fresh",
        "remedy": "against not_fresh",
    }  # fmt: skip
    assert incidents.stalled(found) == [{"learner": 1, "reports": 1, "first_s": 4.0}]
    lost = incidents.quorums_lost(found)
    assert [(row["start_s"], row["for_s"], row["regained"]) for row in lost] == [(5.0, 1.0, True), (8.0, 1.0, False)]
    assert (lost[0]["missing"], lost[0]["possible"], lost[0]["quorum"]) == (["L1"], 1, 2)
    assert incidents.own_stops(found) == [{"time_s": 8.5, "for_s": 0.7}]
    assert incidents.syncer_restarts(found) == 0


def test_what_the_syncer_reports_of_a_run() -> None:
    records = simulated((Fault("kill_syncer", 2 * SECOND, for_ns=SECOND),), CONFIG.set(quorum=3))
    assert incidents.syncer_restarts(tables(records)) == 1
    left = CONFIG.set({"grace": "none", "virtual.slow": (1.0, 1.0, 3.0)})
    rows = incidents.starved(tables(simulated((), left)))
    assert rows[-1]["learner"] == 2 and rows[-1]["rounds_missed"] >= 2 * CONFIG.period
    assert rows[-1]["remedy"]
    killed = simulated((Fault("kill", 2 * SECOND, learner=0, for_ns=SECOND),), CONFIG.set(quorum=3))
    [row] = incidents.quorums_lost(tables(killed))
    assert row["missing"] == ["L0"] and row["regained"] and 0.5 < row["for_s"] < 3
