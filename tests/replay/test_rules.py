"""Small runs of every rule, under faults, replay bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.replay.runs import FAULTS, Changes, config_of, live, replayed
from workbench.config import InnerConfig
from workbench.protocol.records import Kind
from workbench.replay.machines import Rerun

RULES: dict[str, dict[str, Any]] = {
    "mean": {"merge": "mean", "quorum": 2},
    "rda_sgd_bf16": {"outer": "sgd", "codec": "bf16", "eligibility": "paced"},
    # everybody is needed, so nobody may be quarantined
    "blend_lock_step": {"fold": "blend", "lead": 0, "quorum": 3, "eligibility": "step", "grace": "all",
                        "quarantine_after": 0},
    "delay_corrected": {"fold": "delay_corrected", "grace": "fixed", "grace_s": 0.05},
    "delay_corrected_base": {"fold": "delay_corrected", "anchor": "base", "codec": "bf16", "merge": "mean"},
    "base_due": {"anchor": "base", "fold_at": "due", "fold": "blend", "fold_alpha": 0.25},
    "due_uniform": {"fold_at": "due", "weights": "uniform", "grace": "none", "overlap": 3},
    "whole_model": {"fragments": 1, "period": 3, "overlap": 0, "weights": "tokens", "outer_momentum": 0.0},
    "unguarded": {"guard_nonfinite": False, "fold": "delay_corrected", "fold_at": "due"},
    "accumulated": {"inner": InnerConfig(optimizer="sgd", batch=1, accumulation=2, rate=0.1), "fragmentation": "layer",
                    "fragments": 3},
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_replay_is_bit_exact_under_faults(name: str, text_path: Path) -> None:
    run = live(config_of(text_path, seed=len(name), **RULES[name]), FAULTS)
    kinds = {Kind(r.kind) for r in run.records}
    assert kinds >= {Kind.FAULT_APPLIED, Kind.PROCESS_ENDED, Kind.MERGED}
    assert [r.reason for r in run.records if r.kind == Kind.SYNCER_STARTED] == ["new", "restart"]
    for order in ("journal", 1):
        report = replayed(run, order)
        assert report.bit_exact, report.first_difference
        assert report.final_digest == run.digest
        assert report.steps == sum(r.kind == Kind.STEP_ENDED for r in run.records)
        assert report.captures == sum(r.kind == Kind.FRAGMENT_CAPTURED for r in run.records)
    again = Rerun(run.config, run.records).run(run.inputs)
    assert again.equal, again.first_difference
    assert again.lives == 2


def test_live_settings_replay_also_for_a_process_that_starts_after_the_change(text_path: Path) -> None:
    changes: Changes = [
        (0.7, {"inner.rate": 5e-3, "fold": "delay_corrected"}),
        (0.9, {"outer": "sgd"}),
        (1.2, {"outer": "nesterov", "merge": "mean", "weights": "tokens"}),
    ]
    run = live(config_of(text_path, rounds=30), FAULTS, changes)
    applied = [r for r in run.records if r.kind == Kind.SETTING_APPLIED and r.process == 4]
    lives = [r.incarnation for r in run.records if r.kind == Kind.STATE_ADOPTED and r.process == 4]
    assert any(r.incarnation == lives[-1] for r in applied), "the restarted learner began with the old learning rate"
    merges = [r for r in run.records if r.kind == Kind.MERGED]
    assert any(r.detail["fresh_outer"] and r.detail["outer"] == "nesterov" for r in merges)
    for order in ("journal", 3):
        assert replayed(run, order).verify().final_digest == run.digest
