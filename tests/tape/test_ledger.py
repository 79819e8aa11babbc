from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tape.journals import Fleet
from workbench.protocol.records import SUPERVISOR, SYNCER, Kind, Record, process_of
from workbench.tape.ledger import Ledger, LedgerError

L0 = process_of(0)


def rec(kind: Kind, process: int = SYNCER, **columns: Any) -> Record:
    return Record(kind, process, 0, 0, 0, **columns)


def steps(first: int, last: int, learner: int = 0, tokens: int = 100) -> list[Record]:
    return [rec(Kind.STEP_ENDED, process_of(learner), step=n, steps=1, tokens=tokens) for n in range(first, last + 1)]


def captured(step: int, tokens: int, fragment: int = 0, round_: int = 1) -> Record:
    return rec(Kind.FRAGMENT_CAPTURED, L0, fragment=fragment, step=step, tokens=tokens, round=round_)


def merged(step: int, tokens: int, fragment: int = 0, round_: int = 1, version: int = 1) -> Record:
    detail = {"learners": [0], "steps_captured": [step], "c_steps": [1], "c_tokens": [tokens]}
    return rec(Kind.MERGED, fragment=fragment, round=round_, version=version, tokens=tokens, detail=detail)


def folded(tokens: int, fragment: int = 0, rule: str = "overwrite", base: int = 0, **columns: Any) -> Record:
    return rec(Kind.UPDATE_FOLDED, L0, fragment=fragment, reason=rule, tokens=tokens, base_version=base, **columns)


def joined(number: int, learner: int = 0, reason: str = "process") -> Record:
    return rec(Kind.LEARNER_JOINED, peer=process_of(learner), value=number, reason=reason)


def lost(reason: str, learner: int = 0) -> Record:
    return rec(Kind.LEARNER_LOST, peer=process_of(learner), reason=reason)


def run(*records: Record | list[Record], sizes: tuple[int, ...] = (10,), learners: int = 1) -> Ledger:
    ledger = Ledger(learners, len(sizes), sizes)
    for item in records:
        for record in item if isinstance(item, list) else [item]:
            ledger.apply(record)
            ledger.check_last()
    ledger.check()
    return ledger


def held(ledger: Ledger, fragment: int = 0, learner: int = 0) -> dict[str, int]:
    return {fate: tokens for fate, tokens in ledger.books(learner, fragment).items() if tokens}


def test_vector_of_the_definition() -> None:
    ledger = run(
        joined(1), steps(1, 3), captured(3, 300), captured(3, 300, fragment=1, round_=2),
        rec(Kind.FRAGMENT_DROPPED, peer=L0, fragment=1, round=2, step=3, reason="late"), merged(3, 300),
        steps(4, 4), folded(400), steps(5, 5), folded(500, fragment=1), steps(6, 6), sizes=(10, 10),
    )  # fmt: skip
    assert held(ledger, 0) == {"merged": 300, "overwritten": 100, "local": 200}
    assert held(ledger, 1) == {"not_merged": 500, "local": 100}
    assert ledger.by_reason()["not_merged"] == {"late": 250}
    assert ledger.merged_by_round() == {1: 150}
    assert ledger.totals() == {
        "tokens_processed": 600, "tokens_merged": 150, "tokens_overwritten": 50, "tokens_not_merged": 250,
        "tokens_blended": 0, "tokens_lost": 0, "tokens_rolled_back": 0, "tokens_local": 150,
    }  # fmt: skip


def test_fragments_weigh_by_size() -> None:
    ledger = run(steps(1, 2), captured(2, 200), merged(2, 200), sizes=(30, 10))
    assert ledger.totals()["tokens_merged"] == 150 and ledger.totals()["tokens_local"] == 50


def test_delay_corrected_tail_opens_the_next_interval() -> None:
    fold = folded(400, rule="delay_corrected", detail={"reference": 3})
    ledger = run(
        steps(1, 3), captured(3, 300), merged(3, 300), steps(4, 4), fold, steps(5, 5), captured(5, 200, round_=9)
    )
    assert held(ledger) == {"merged": 300, "local": 200}


def test_delay_corrected_without_a_contribution_carries_the_whole_interval() -> None:
    fold = folded(200, rule="delay_corrected", detail={"reference": -1})
    assert held(run(steps(1, 2), fold, steps(3, 3), captured(3, 300))) == {"local": 300}


def test_blend_takes_the_tail_or_the_interval() -> None:
    ledger = run(
        steps(1, 2), captured(2, 200), merged(2, 200), steps(3, 3), folded(300, rule="blend", value=0.5),
        steps(4, 4), folded(100, rule="blend", value=0.25), steps(5, 5), folded(100, rule="blend", value=0.0),
    )  # fmt: skip
    assert held(ledger) == {"merged": 200, "blended": 200, "not_merged": 100}
    assert ledger.by_reason()["blended"] == {"0.25": 100, "0.5": 100}


def test_healing_loses_the_interval() -> None:
    ledger = run(joined(1), steps(1, 2), folded(200, base=-1), steps(3, 3))
    assert held(ledger) == {"lost": 200, "local": 100}
    assert ledger.by_reason()["lost"] == {"healing": 200}


def test_a_contribution_of_a_dead_learner_moves_from_lost_to_merged() -> None:
    ledger = run(joined(1), steps(1, 3), captured(2, 200), lost("exit"), merged(2, 200))
    assert held(ledger) == {"merged": 200, "lost": 100}


def test_a_contribution_merged_after_the_fold_of_an_older_version() -> None:
    ledger = run(steps(1, 3), captured(2, 200), folded(300), steps(4, 4), merged(2, 200))
    assert held(ledger) == {"merged": 200, "overwritten": 100, "local": 100}


def test_a_capture_recorded_after_the_fold_of_its_interval() -> None:
    assert held(run(steps(1, 3), folded(300), captured(2, 200), merged(2, 200))) == {"merged": 200, "overwritten": 100}


@pytest.mark.parametrize("reason", ["heartbeat", "socket", "unanswered"])
def test_a_lost_connection_ends_no_interval(reason: str) -> None:
    assert held(run(joined(1), steps(1, 2), lost(reason), joined(1, reason="rejoin"), steps(3, 3))) == {"local": 300}


def test_a_process_that_greets_a_restarted_syncer_goes_on() -> None:
    assert held(run(joined(1), steps(1, 2), rec(Kind.SYNCER_STARTED, reason="restart"), joined(1))) == {"local": 200}


def test_a_new_process_ends_the_intervals_of_the_old_one_once() -> None:
    late_word = rec(Kind.PROCESS_ENDED, SUPERVISOR, peer=L0, value=1, reason="SIGKILL")
    ledger = run(joined(1), steps(1, 2), lost("socket"), joined(2), steps(3, 3), late_word)
    assert held(ledger) == {"lost": 200, "local": 100}


def test_leaving_at_the_end_of_the_run_is_no_death() -> None:
    ended = rec(Kind.PROCESS_ENDED, SUPERVISOR, peer=L0, value=1, reason="0")
    assert held(run(joined(1), steps(1, 2), lost("ended"), ended, rec(Kind.RUN_ENDED))) == {"local": 200}


def test_removal_and_adoption_have_their_own_reasons() -> None:
    adopted = rec(Kind.STATE_ADOPTED, L0, reason="peer")
    ledger = run(joined(1), steps(1, 1), folded(100, base=-1), steps(2, 2), adopted, steps(3, 3), sizes=(10, 10))
    assert held(ledger, 0) == {"lost": 100, "local": 200}  # folded from the syncer: it stays
    assert held(ledger, 1) == {"lost": 200, "local": 100}
    assert ledger.by_reason()["lost"] == {"adopted": 100, "healing": 50}
    ledger.apply(lost("removed"))
    assert ledger.by_reason()["lost"]["removal"] == 150


def test_reasons_of_one_round_yield_to_the_closer_and_to_later_rounds() -> None:
    left_out = rec(Kind.GRACE_ENDED, fragment=0, round=1, detail={"left_out": {0: "not_fresh"}})
    dropped = rec(Kind.FRAGMENT_DROPPED, peer=L0, fragment=0, round=1, step=1, reason="nonfinite")
    others = rec(Kind.MERGED, fragment=0, round=5, version=2)
    asked = rec(Kind.PULL_SENT, peer=L0, fragment=0, round=5)
    assert run(joined(1), steps(1, 1), dropped, left_out, folded(100)).by_reason()["not_merged"] == {"nonfinite": 100}
    passed = run(joined(1), steps(1, 1), dropped, others, folded(100))
    assert passed.by_reason()["not_merged"] == {"not_ready": 100}
    gone = run(joined(1), steps(1, 1), lost("socket"), others, joined(1, reason="rejoin"), folded(100))
    assert gone.by_reason()["not_merged"] == {"gone": 100}
    silent = run(joined(1), steps(1, 1), asked, others, folded(100))
    assert silent.by_reason()["not_merged"] == {"pull_limit": 100}


def test_roll_back_undoes_what_lies_behind_the_cut() -> None:
    ledger = run(
        steps(1, 2), captured(2, 200), merged(2, 200), folded(200), steps(3, 4),
        captured(4, 200, round_=2), merged(4, 200, round_=2, version=2), steps(5, 5), folded(300), steps(6, 6),
    )  # fmt: skip
    cut = rec(Kind.SYNCER_STARTED, reason="restart", detail={"cut": {"steps": {"0": 3}, "versions": [1]}})
    ledger.apply(cut)
    ledger.check()
    assert held(ledger) == {"merged": 200, "rolled_back": 300, "local": 100}
    for record in [*steps(4, 4), captured(4, 200, round_=3), merged(4, 200, round_=3, version=2)]:
        ledger.apply(record)
        ledger.check_last()
    assert held(ledger) == {"merged": 400, "rolled_back": 300}
    assert ledger.processed(0) == 700 and ledger.merged_by_round() == {1: 200, 3: 200}


def test_roll_back_of_a_merge_whose_interval_was_closed_before() -> None:
    ledger = run(steps(1, 2), captured(1, 100), folded(200), steps(3, 3), merged(1, 100, version=2))
    ledger.roll_back({0: 3}, [1])
    ledger.check()
    assert held(ledger) == {"overwritten": 100, "rolled_back": 100, "local": 100}


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([*steps(1, 2), captured(2, 300)], r"L0, fragment 0: captured after own step 2 with 300 tokens.* 200"),
        ([*steps(1, 2), folded(100)], r"L0, fragment 0: fold of version -1 ends 100 tokens.* 200"),
        ([*steps(1, 2), merged(2, 200), merged(2, 200)], r"L0, fragment 0: .*200 of them a second time"),
        ([*steps(1, 2), merged(7, 200)], r"L0, fragment 0: .*own step 7, which no record holds"),
        ([rec(Kind.FRAGMENT_CAPTURED, L0, fragment=5)], r"L0, fragment 5: no such book"),
        ([rec(Kind.STEP_ENDED, L0, step=1, tokens=-5)], r"own step 1 counts -5 tokens"),
    ],
)
def test_records_that_contradict_the_steps_are_named(records: list[Record], message: str) -> None:
    ledger = Ledger(1, 1, [10])
    for record in records:
        ledger.apply(record)
    with pytest.raises(LedgerError, match=message):
        ledger.check_last()
    with pytest.raises(LedgerError, match=message):
        ledger.check()


def test_a_book_that_does_not_balance_is_named() -> None:
    ledger = run(steps(1, 2), folded(200))
    ledger._state.accounts[0].books[0].fates["lost"] += 7
    with pytest.raises(LedgerError, match="L0, fragment 0, 200 tokens processed: 207 tokens have a fate"):
        ledger.check()


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(LedgerError, match="one per fragment"):
        Ledger(1, 2, [10])


@settings(max_examples=80)
@given(st.integers(0, 2**32), st.sampled_from([20, 100, 400]))
def test_every_step_has_the_fate_of_the_brute_force_ledger(seed: int, events: int) -> None:
    sizes = [3, 5]
    fleet = Fleet(seed).run(events)
    ledger = Ledger(1, 2, sizes)
    for record in fleet.records:
        ledger.apply(record)
        ledger.check_last()
    ledger.check()
    for m in range(ledger.learners):
        for p in range(2):
            assert held(ledger, p, m) == {k: v for k, v in fleet.reference.book(m, p).items() if v}
    found: Counter[str] = Counter()
    for fate, reasons in ledger.by_reason().items():
        for reason, tokens in reasons.items():
            found[default(f"{fate}:{reason}")] += round(tokens * sum(sizes))
    expected: Counter[str] = Counter()
    for fate, weighted in fleet.reference.reasons(sizes).items():
        expected[default(fate)] += weighted
    assert {k: v for k, v in found.items() if v and k[-1] != ":"} == {k: v for k, v in expected.items() if ":" in k}


def default(fate: str) -> str:
    """The reference does not tell apart why a round passed a learner over."""
    return "not_merged:passed" if fate in ("not_merged:not_ready", "not_merged:gone") else fate
