"""PROTOCOL sections 1, 7 and 8: how a learner absorbs updates and learns what became of its contributions."""

from __future__ import annotations

import pytest

from tests.protocol.driving import TOKENS, Alone
from workbench.protocol.actions import Fold, Publish, Release
from workbench.protocol.records import Kind


def test_a_fold_sets_the_base_the_counters_and_the_host_copy() -> None:
    alone = Alone(period=2, fragments=2).healed(steps=3)
    alone.hears(alone.update(1, p=1, t=1))
    assert alone.state.base == [0, 0], "it lies unfolded until the boundary"
    done = alone.step()
    state = alone.state
    assert state.base == [0, 1] and state.c_steps == [4, 0] and state.c_tokens == [4 * TOKENS, 0]
    assert state.published.c_steps == [4, 0]
    kinds = [type(a) for a in done]
    assert kinds.index(Fold) < kinds.index(Publish, kinds.index(Fold)), "the host copy of the fragment follows the fold"
    assert [a.fragment for a in done if isinstance(a, Publish)] == [-1, 1]
    assert [a.handle for a in done if isinstance(a, Release)] == [101]


def test_the_fold_is_recorded_with_the_interval_that_it_ends() -> None:
    alone = Alone().healed(steps=3)
    alone.hears(alone.update(1, t=2))
    alone.step()
    folded = alone.records(Kind.UPDATE_FOLDED)[-1]
    assert (folded.fragment, folded.round, folded.version, folded.base_version) == (0, 2, 1, 0)
    assert (folded.step, folded.steps, folded.tokens, folded.reason, folded.value) == (
        5,
        4,
        4 * TOKENS,
        "overwrite",
        0.0,
    )


def test_g_is_the_round_of_an_update_that_was_received_folded_then_or_not() -> None:
    alone = Alone(period=4, fragments=4, overlap=2, fold_at="due").healed()
    alone.hears(alone.update(1, p=3, t=11))
    assert alone.state.g == 2
    alone.step()
    assert alone.state.g == 11 and alone.state.base[3] == 0, "at the boundary; not folded before it is due"
    alone.step()
    assert alone.state.g == 12, "+1 with every step"


def test_an_older_round_does_not_set_g_back() -> None:
    alone = Alone().healed(steps=9)
    alone.hears(alone.update(1, t=2))
    alone.step()
    assert alone.state.g == 11


def test_updates_are_folded_in_the_order_of_their_arrival() -> None:
    alone = Alone(period=4, fragments=4).healed()
    for p in (2, 0, 3):
        alone.hears(alone.update(1, p=p, t=4))
    alone.hears(alone.update(2, p=2, t=8))
    alone.step()
    assert [(f.fragment, f.version) for f in alone.did(Fold)[-3:]] == [(0, 1), (3, 1), (2, 2)], "the newest counts"


def test_the_newest_replaces_what_waits() -> None:
    alone = Alone().healed()
    for version in (1, 2, 3):
        alone.hears(alone.update(version, t=2 * version))
    assert list(alone.state.inbox) == [0]
    assert [a.handle for a in alone.did(Release)][-2:] == [101, 102], "what is replaced is let go"
    alone.step()
    assert alone.did(Fold)[-1].version == 3 and alone.did(Fold)[-2].version == 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_what_is_not_newer_than_the_base_is_ignored(version: int) -> None:
    alone = Alone().healed()
    alone.hears(alone.update(2, t=4))
    alone.step()
    folds = len(alone.did(Fold))
    alone.hears(alone.update(version, t=4, handle=777))
    alone.step()
    assert len(alone.did(Fold)) == folds and alone.did(Release)[-1].handle == 777


def test_base_never_falls() -> None:
    alone = Alone().healed()
    seen = []
    for version in (3, 1, 4, 2, 4, 5):
        alone.hears(alone.update(version, t=2 * version))
        alone.step()
        seen.append(alone.state.base[0])
    assert seen == [3, 3, 4, 4, 4, 5]


def test_receipt_folds_at_the_next_boundary_due_at_t_plus_tau() -> None:
    receipt = Alone(period=4, fragments=4, overlap=2).healed()
    due = Alone(period=4, fragments=4, overlap=2, fold_at="due").healed()
    for alone in (receipt, due):
        assert alone.state.g == 2
        alone.hears(alone.update(1, p=2, t=2))
        alone.step()
    assert (receipt.state.base[2], due.state.base[2]) == (1, 0)
    due.step()
    assert due.state.g == 4 and due.state.base[2] == 1


def test_due_folds_at_once_what_it_does_not_hold() -> None:
    alone = Alone(period=4, fragments=4, overlap=2, fold_at="due").live()
    alone.hears(alone.update(6, p=2, t=90))
    alone.step()
    assert alone.state.base[2] == 6


def test_blend_names_its_alpha() -> None:
    alone = Alone(fold="blend", fold_alpha=0.25).healed()
    alone.hears(alone.update(1, t=2))
    alone.step()
    fold = alone.did(Fold)[-1]
    assert (fold.rule, fold.alpha) == ("blend", 0.25) and alone.state.c_steps == [0]


def test_the_first_fold_of_a_process_overwrites_whatever_the_rule() -> None:
    for rule in ("blend", "delay_corrected"):
        alone = Alone(fold=rule).live()
        alone.hears(alone.update(4, t=8))
        alone.step()
        assert (alone.did(Fold)[-1].rule, alone.state.c_steps) == ("overwrite", [0])


def test_delay_corrected_keeps_the_steps_since_the_copy_that_was_merged() -> None:
    alone = Alone(fold="delay_corrected").healed(steps=4)
    n = alone.contribute(2).step
    alone.step()
    alone.hears(alone.update(1, t=2, last_merged=1, last_merged_step=n))
    alone.step()
    fold = alone.did(Fold)[-1]
    assert (fold.rule, fold.reference) == ("delay_corrected", n)
    assert alone.state.c_steps == [2] and alone.state.c_tokens == [2 * TOKENS] == alone.state.published.c_tokens
    folded = alone.records(Kind.UPDATE_FOLDED)[-1]
    assert folded.detail == {"reference": n, "included": 1, "anew": 0}


def test_delay_corrected_without_a_contribution_keeps_all_since_the_base() -> None:
    alone = Alone(fold="delay_corrected").healed(steps=4)
    alone.contribute(2)
    alone.hears(alone.update(1, t=2))
    alone.step()
    assert alone.did(Fold)[-1].reference == -1 and alone.state.c_steps == [5]
    assert alone.records(Kind.UPDATE_FOLDED)[-1].detail["included"] == 0


def test_included_means_merged_into_a_version_above_the_base() -> None:
    alone = Alone(fold="delay_corrected").healed()
    n = alone.contribute(2).step
    alone.hears(alone.update(1, t=2, last_merged=1, last_merged_step=n))
    alone.step()
    alone.hears(alone.update(2, t=4, last_merged=1, last_merged_step=n))
    alone.step()
    assert [r.detail["included"] for r in alone.records(Kind.UPDATE_FOLDED)] == [0, 1, 0]
    assert alone.did(Fold)[-1].reference == -1


def test_a_copy_older_than_the_last_reset_brings_nothing_back() -> None:
    """anchor = base: what was captured on an older base is merged after other updates were folded."""
    alone = Alone(fold="overwrite", anchor="base").healed(steps=3)
    n = alone.contribute(2).step
    alone.hears(alone.update(1, t=2))
    alone.step()
    alone.state.settings.fold = "delay_corrected"
    alone.step()
    alone.hears(alone.update(2, t=4, last_merged=2, last_merged_step=n))
    alone.step()
    assert alone.did(Fold)[-1].reference == n and alone.state.c_steps == [2] and alone.state.c_tokens == [2 * TOKENS]


def test_anew_is_folded_though_its_version_is_not_higher_and_overwrites() -> None:
    alone = Alone(fold="delay_corrected").healed(steps=3)
    alone.hears(alone.update(0, t=0, anew=1))
    alone.step()
    assert (alone.did(Fold)[-1].version, alone.did(Fold)[-1].rule, alone.state.c_steps) == (0, "overwrite", [0])
    assert alone.records(Kind.UPDATE_FOLDED)[-1].detail["anew"] == 1
    folds = len(alone.did(Fold))
    alone.hears(alone.update(0, t=0, anew=1))
    alone.step()
    assert len(alone.did(Fold)) == folds, "once"


def test_anew_stays_with_the_newer_update_that_replaces_it() -> None:
    alone = Alone(fold="blend").healed()
    alone.hears(alone.update(0, anew=2))
    alone.hears(alone.update(1, t=2))
    alone.step()
    assert alone.did(Fold)[-1].rule == "overwrite" and alone.state.anew_seen == [2]


def test_what_was_folded_anew_does_not_make_later_updates_overwrite() -> None:
    """An update that was replaced while it waited took the mark of the one before: steps were thrown away."""
    alone = Alone(fold="delay_corrected").healed()
    alone.hears(alone.update(0, anew=1))
    alone.step()
    alone.hears(alone.update(1, t=2))
    alone.hears(alone.update(2, t=4, anew=1))  # the syncer does not know yet that it was folded
    alone.step()
    assert alone.did(Fold)[-1].rule == "delay_corrected"
    assert alone.records(Kind.UPDATE_FOLDED)[-1].detail["anew"] == 0
