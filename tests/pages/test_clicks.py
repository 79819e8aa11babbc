"""What becomes of a click: its row goes on as records come, and says when nothing more will."""

from __future__ import annotations

from typing import Any

from tests.analysis.runs import rec
from workbench.pages import clicks, commands
from workbench.pages.clicks import KEPT, Command, Commands
from workbench.pages.controls import clicks_html
from workbench.protocol.records import SUPERVISOR, SYNCER, Kind, Record, process_of

L1 = process_of(1)


def injected(kind: str, at_s: float = 1.0, **detail: Any) -> Record:
    return rec(Kind.FAULT_INJECTED, at_s, SUPERVISOR, peer=L1, reason=kind, detail={"fault": 7, **detail})


def merged(round_: int, at_s: float, *learners: int) -> Record:
    return rec(Kind.MERGED, at_s, SYNCER, round=round_, detail={"learners": list(learners)})


def shown(*clicked: Command) -> Commands:
    kept = Commands()
    kept.began_s = 0.0
    for one in clicked:
        kept.add(one)
    return kept


def struck(kind: str, **values: Any) -> tuple[Commands, Command]:
    click = commands.fault(kind, 1, **values)
    kept = shown(click)
    click.answered({"done": kind, "target": "L1", "fault": 7})
    return kept, click


def test_a_kill_is_followed_until_its_learner_is_merged_again() -> None:
    kept, click = struck("kill")
    for record in (
        rec(Kind.ROUND_OPENED, 0.5, SYNCER, round=40),
        injected("kill"),
        merged(40, 1.1, 0, 1),  # what was on its way
        rec(Kind.PROCESS_ENDED, 1.2, SUPERVISOR, peer=L1),
        rec(Kind.LEARNER_JOINED, 4.5, SYNCER, peer=process_of(0)),
        rec(Kind.LEARNER_JOINED, 5.0, SYNCER, peer=L1),
        merged(48, 5.5, 0),
        merged(52, 6.0, 0, 1),
    ):
        kept.note(record)
    assert click.seen == (
        "on the tape at 1.00 s (round 40); process gone at 1.20 s; joined again at 5.00 s; "
        "merged again in round 52 at 6.00 s"
    )


def test_a_kill_whose_end_telemetry_dropped_is_followed_all_the_same_and_one_for_good_ends() -> None:
    kept, click = struck("kill")
    for record in (injected("kill"), rec(Kind.LEARNER_JOINED, 5.0, SYNCER, peer=L1)):
        kept.note(record)
    assert click.seen == "on the tape at 1.00 s; joined again at 5.00 s"
    kept, click = struck("kill", down_s=0.0)
    for record in (injected("kill"), rec(Kind.PROCESS_ENDED, 1.2, SUPERVISOR, peer=L1)):
        kept.note(record)
    assert click.effect.done and click.seen.endswith("process gone at 1.20 s")


def test_bad_numbers_are_followed_to_the_guard_that_refused_them_or_the_merge_that_took_them() -> None:
    applied = rec(Kind.FAULT_APPLIED, 1.5, L1, reason="nan", detail={"round": 44})
    dropped = rec(Kind.FRAGMENT_DROPPED, 2.0, SYNCER, peer=L1, round=44, reason="nonfinite")
    kept, click = struck("nan")
    for record in (injected("nan"), merged(40, 1.2, 1), applied, dropped, merged(44, 2.1, 0)):
        kept.note(record)
    assert click.seen == (
        "on the tape at 1.00 s; in its contribution to round 44 at 1.50 s; "
        "refused: it held NaN or an infinity (nonfinite) at 2.00 s"
    )
    for guard, words in (("norm", "refused: a guard refused its numbers (guard), guard_norm"), ("", "merged: nothing")):
        kept, click = struck("nan")
        verdict = merged(44, 2.0, 1)
        if guard:
            verdict = rec(
                Kind.FRAGMENT_DROPPED, 2.0, SYNCER, peer=L1, round=44, reason="guard", detail={"guard": guard}
            )
        for record in (injected("nan"), applied, verdict):
            kept.note(record)
        assert words in click.seen


def test_an_added_learner_is_expected_joins_and_is_merged() -> None:
    click = commands.add()
    kept = shown(click)
    click.answered({"done": "add", "learner": 1})
    for record in (
        rec(Kind.LEARNER_ADDED, 1.0, SYNCER, peer=L1),
        rec(Kind.LEARNER_JOINED, 2.0, SYNCER, peer=L1),
        merged(8, 3.0, 0, 1),
    ):
        kept.note(record)
    assert click.seen == "L1 is expected at 1.00 s; joined at 2.00 s; merged in round 8 at 3.00 s"
    assert click.effect.done


def test_a_killed_syncer_is_seen_to_start_again_though_it_took_its_telemetry_along() -> None:
    def status(state: str, number: int) -> dict[str, Any]:
        return {"phase": "running", "syncer": {"state": state, "number": number}}

    kept = Commands()
    kept.look(status("running", 1), 0.0)
    click = commands.fault("kill_syncer", -1)
    kept.add(click)
    click.answered({"done": "kill_syncer", "fault": 7})
    for after_s, one in enumerate((status("running", 1), status("waiting", 1), status("running", 2))):
        assert click.seen == ""
        kept.look(one, click.answered_s + after_s)
    assert click.seen == "started again (start 2)"


def test_what_is_in_force_keeps_its_row_and_its_undo_until_it_is_over() -> None:
    kept, slow = struck("slow", for_s=0.0)
    kept.note(injected("slow"))
    for _ in range(2 * KEPT):
        stop = commands.stop()
        kept.add(stop)
    assert len(kept.kept) == KEPT and kept.kept[0] is slow
    assert [slow.can_be_undone] == [True]
    detail = {"fault": 7, "why": "healed"}
    kept.note(rec(Kind.FAULT_ENDED, 9.0, SUPERVISOR, peer=L1, reason="slow", value=8.0, detail=detail))
    assert (slow.seen, slow.can_be_undone) == ("on the tape at 1.00 s; healed after 8.0 s at 9.00 s", False)
    assert "undo" not in clicks_html([slow], may=True) and kept.inverse(str(slow.number)) is None
    kept.add(commands.stop())
    assert slow not in kept.kept


def test_a_fault_whose_end_telemetry_dropped_is_over_by_the_status() -> None:
    kept, slow = struck("slow", for_s=0.0)
    kept.note(injected("slow"))
    acts = {"phase": "running", "learners": [{"learner": 1, "acting": ["slow"]}]}
    over = {"phase": "running", "learners": [{"learner": 1, "acting": []}]}
    kept.look(over, slow.answered_s - 1.0)  # asked for before the fault was
    kept.look(acts, slow.answered_s + 1.0)
    assert [slow.is_in_force] == [True]
    for after_s in (2.0, 2.0 + 2 * clicks.RECORD_LIMIT_S):
        kept.look(over, slow.answered_s + after_s)
    assert (slow.is_in_force, slow.seen) == (False, "on the tape at 1.00 s; over")


def test_a_fault_without_effect_and_a_heal_of_nothing_say_so_and_are_done() -> None:
    kept, cut = struck("cut", for_s=0.0)
    kept.note(injected("cut", effect=0))
    assert cut.seen == "on the tape, without effect: found no process at 1.00 s" and not cut.can_be_undone
    heal = commands.heal(1)
    heal.answered({"done": "heal", "target": "L1", "healed": 0})
    assert heal.seen == "nothing was in force on it: nothing ended" and "…" not in clicks_html([heal])
    heal = commands.heal(1)
    kept = shown(heal)
    heal.answered({"done": "heal", "target": "L1", "healed": 2})
    for kind in ("slow", "cut"):
        kept.note(rec(Kind.FAULT_ENDED, 2.0, SUPERVISOR, peer=L1, reason=kind, detail={"why": "healed"}))
    assert heal.seen == "its faults are over: slow, cut at 2.00 s"


def test_the_same_lasting_fault_twice_is_refused_while_the_first_acts() -> None:
    kept, _ = struck("slow", factor=3.0, for_s=0.0)
    kept.note(injected("slow"))
    again, other = commands.fault("slow", 1, factor=3.0, for_s=0.0), commands.fault("slow", 1, factor=2.0, for_s=0.0)
    assert "L1 has this fault already" in kept.why_not(again)
    assert kept.why_not(other) == kept.why_not(commands.fault("slow", 0, factor=3.0, for_s=0.0)) == ""
    detail = {"fault": 7, "why": "healed"}
    kept.note(rec(Kind.FAULT_ENDED, 9.0, SUPERVISOR, peer=L1, reason="slow", detail=detail))
    assert kept.why_not(again) == ""
    kept, _ = struck("lose_up", count=1)
    assert kept.why_not(commands.fault("lose_up", 1, count=1)) == ""


def test_no_click_waits_for_ever() -> None:
    change = commands.change({"quorum": 2})
    kept = shown(change)
    change.answered({"revision": 3, "round": 4})
    kept.look({"phase": "running"}, change.answered_s + clicks.SEEN_LIMIT_S + 1.0)
    assert "what did not reach this page is on the tape" in change.seen
    kept.note(rec(Kind.SETTING_APPLIED, 9.0, SYNCER, setting=4, round=8))  # a later revision holds it too
    assert change.seen == "syncer acts on it from round 8 at 9.00 s"
    kill = commands.fault("kill", 1)
    kept = shown(kill)
    kill.answered({"fault": 7})
    kept.ended()
    assert kill.seen == "no more before the run was over"
