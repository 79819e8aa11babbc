from __future__ import annotations

from tests.analysis.runs import began, ended, fault, healed, joined, lost, rec
from workbench.analysis.arrays.fault_effects import fault_effects
from workbench.analysis.arrays.incidents import left_by_hand, own_ends, settings_changed
from workbench.analysis.arrays.refusals import quarantines, refused
from workbench.analysis.from_records import tables
from workbench.cli.pages.incidents import sentences
from workbench.protocol.records import SUPERVISOR, SYNCER, Kind, Record, process_of

NOTHING: dict[str, list[object]] = {name: [] for name in ("starved", "stalled", "quorums_lost", "own_stops")}


def end(time_s: float, process: int, how: str, line: str = "") -> Record:
    return rec(
        Kind.PROCESS_ENDED, time_s, SUPERVISOR, peer=process, value=1.0, reason=how,
        detail={"line": line} if line else {},
    )  # fmt: skip


def run(*more: Record) -> list[Record]:
    records = [joined(0), joined(1), healed(0), healed(1), began(), *more, ended(20)]
    return sorted(records, key=lambda record: record.time_ns)


def test_only_ends_that_no_fault_explains_are_told_with_the_last_line() -> None:
    found = own_ends(
        tables(
            run(
                fault(0, 5, "kill", 6),
                end(5.1, process_of(0), "SIGKILL"),
                end(7, process_of(1), "exit 3", "RuntimeError: no more text"),
                end(9, SYNCER, "SIGKILL"),
                end(12, process_of(0), "exit 0"),
                end(21, process_of(1), "SIGKILL"),
            )
        )
    )
    assert [(row["time_s"], row["process"], row["how"], row["line"]) for row in found] == [
        (7.0, "L1", "exit 3", "RuntimeError: no more text"),
        (9.0, "syncer", "SIGKILL", ""),
    ]
    told = dict(sentences({**NOTHING, "syncer_restarts": 0, "own_ends": found[:1], "settings_changed": []}))
    assert told == {"ended by itself": "L1 at 7 s, exit 3: RuntimeError: no more text"}


def test_processes_that_nobody_watched_are_told_with_what_came_after() -> None:
    started = rec(Kind.PROCESS_STARTED, 0, SUPERVISOR, peer=process_of(1), value=1.0)
    found = left_by_hand(
        tables(
            run(
                started,
                lost(1, 3, "heartbeat"),
                lost(0, 4, "socket"),
                joined(0, 4.5, 1, "rejoin"),
                lost(0, 7, "socket"),
                joined(0, 9.5, 2),
                lost(0, 12, "left"),
            )
        )
    )
    assert [(row["learner"], row["time_s"], row["again_s"]) for row in found] == [(0, 7.0, 2.5), (0, 12.0, None)]
    told = [said for name, said in sentences({**NOTHING, "syncer_restarts": 0, "own_ends": [], "left_by_hand": found,
                                              "settings_changed": []}) if name == "left"]  # fmt: skip
    assert told == [
        "L0 at 7 s, its connection closed; another came 2.5 s later",
        "L0 at 12 s, it left in order; it never came again",
    ]


def test_settings_that_changed_are_told_with_who_and_when() -> None:
    change = rec(Kind.SETTING_CHANGED, 4, SYNCER, setting=2, detail={"values": {"grace": "fixed"}, "who": "cli"})
    found = settings_changed(tables(run(change)))
    assert found == [{"time_s": 4.0, "revision": 2, "who": "cli", "values": {"grace": "fixed"}}]


def test_who_left_for_good_is_never_merged_again() -> None:
    effect = fault_effects(tables(run(fault(1, 5, "exit", 2**62 / 1e9))))[0]
    assert (effect["for_s"], effect["merged_again_s"]) == (None, None)


def test_refusals_flags_and_quarantines_are_told_by_learner() -> None:
    def dropped(time_s: float, learner: int, reason: str) -> Record:
        return rec(
            Kind.FRAGMENT_DROPPED,
            time_s,
            peer=process_of(learner),
            fragment=0,
            round=int(time_s),
            reason=reason,
            step=1,
        )

    def quarantine(time_s: float, quarantined: bool, who: str, why: str) -> Record:
        detail = {"values": {"quarantined": quarantined}, "who": who}
        return rec(Kind.SETTING_CHANGED, time_s, setting=0, peer=process_of(1), reason=why, detail=detail)

    told = tables(
        run(
            dropped(2, 1, "nonfinite"), dropped(3, 1, "guard"), dropped(4, 1, "nonfinite"), dropped(5, 0, "late"),
            quarantine(6, True, "guard", "3 in a row"), quarantine(8, False, "cli", ""),
        )
    )  # fmt: skip
    assert refused(told) == [{"learner": 1, "reasons": {"nonfinite": 2, "guard": 1}, "flagged": 0}]
    assert settings_changed(told) == []
    found = {"refused": refused(told), "quarantines": quarantines(told)}
    quiet = {**NOTHING, "syncer_restarts": 0, "own_ends": [], "settings_changed": []}
    assert dict(sentences({**quiet, **found})) == {
        "refused": "L1: 2 times nonfinite, once guard",
        "quarantined": "L1 at 6 s, by guard: 3 in a row",
        "released": "L1 at 8 s, by cli",
    }
