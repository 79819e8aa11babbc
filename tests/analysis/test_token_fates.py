from __future__ import annotations

import numpy as np
import pytest

from tests.analysis.runs import CONFIG, FAULTS, SECOND, simulated
from tests.tape.journals import Fleet
from workbench.analysis.arrays.token_fates import fates_by_learner, ledger_of, merged_share, token_fates
from workbench.analysis.from_records import tables
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind
from workbench.tape.ledger import Ledger


@pytest.mark.parametrize("seed", range(8))
def test_tables_hold_all_that_the_ledger_reads(seed: int) -> None:
    records, sizes = Fleet(seed).run(400).records, [3, 5]
    ledger = Ledger(1, 2, sizes)
    for record in records:
        ledger.apply(record)
    found = ledger_of(tables(records), sizes)
    found.check()
    assert found.totals() == ledger.totals() and found.by_reason() == ledger.by_reason()
    assert found.merged_by_round() == ledger.merged_by_round()


@pytest.mark.parametrize("fold", ["overwrite", "blend", "delay_corrected"])
@pytest.mark.parametrize("anchor", ["current", "base"])
def test_every_book_of_a_run_in_virtual_time_balances_after_every_record(fold: str, anchor: str) -> None:
    faults = (
        *FAULTS, Fault("kill", 3 * SECOND, learner=0, for_ns=SECOND // 2), Fault("nan", 4 * SECOND, learner=0),
        Fault("cut", 6 * SECOND, learner=1, for_ns=3 * SECOND), Fault("kill_syncer", 9 * SECOND, for_ns=SECOND),
    )  # fmt: skip
    ledger = Ledger(CONFIG.learners, CONFIG.fragments, [1, 2, 3])
    for record in simulated(faults, CONFIG.set(fold=fold, anchor=anchor)):
        ledger.apply(record)
        ledger.check_last()
    ledger.check()
    totals = ledger.totals()
    assert totals["tokens_merged"] > 0.4 * totals["tokens_processed"] and totals["tokens_lost"] > 0
    assert sum(totals.values()) == pytest.approx(2 * totals["tokens_processed"])
    assert (totals["tokens_blended"] > 0) == (fold == "blend")


def test_steady_state_share_is_bounded_by_the_tail() -> None:
    """tokens_merged / tokens_processed is at most (H - tail) / H, and a quiet run comes near it."""
    records = simulated((), CONFIG.set(rounds=120))
    ledger = ledger_of(tables(records))
    tails = [r.tokens for r in records if r.kind == Kind.UPDATE_FOLDED and r.base_version >= 0]
    kept = ledger.totals()["tokens_overwritten"] / ledger.totals()["tokens_processed"]
    assert np.mean(tails) > 0 and 0.55 < merged_share(ledger) <= 1 - kept
    assert ledger.by_reason()["lost"].keys() == {"healing"}


def test_fates_after_every_merge_end_at_the_totals() -> None:
    found = tables(simulated())
    fates, ledger = token_fates(found, [1, 2, 3]), ledger_of(found, [1, 2, 3])
    names = [name for name in fates if name.startswith("tokens_")]
    parts = sum(fates[name] for name in names if name != "tokens_processed")
    assert len(fates["round"]) == CONFIG.rounds and np.allclose(parts, fates["tokens_processed"])
    assert (np.diff(fates["tokens_merged"]) > 0).all()
    assert fates["tokens_merged"][-1] == pytest.approx(ledger.totals()["tokens_merged"])
    assert np.diff(fates["tokens_merged"], prepend=0).tolist() == pytest.approx(list(ledger.merged_by_round().values()))


@pytest.mark.parametrize("seed", range(3))
def test_fates_of_the_learners_add_up_to_the_totals(seed: int) -> None:
    sizes = [3, 5]
    ledger = ledger_of(tables(Fleet(seed).run(400).records), sizes)
    found, totals = fates_by_learner(ledger, sizes), ledger.totals()
    assert {f"tokens_{fate}": tokens.sum() for fate, tokens in found.items()} == pytest.approx(totals)
    fates = np.sum([tokens for fate, tokens in found.items() if fate != "processed"], 0)
    assert fates.tolist() == pytest.approx(found["processed"].tolist())


def test_no_tokens_no_share() -> None:
    assert np.isnan(merged_share(ledger_of(tables([]))))
