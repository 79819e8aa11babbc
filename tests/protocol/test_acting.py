"""Faults that last: what they do to a learner's messages and steps, alone and together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench.protocol.acting import TO_LEARNER, TO_SYNCER, Acting, ActingFaults, seeded
from workbench.protocol.faults import Fault

MS = 1_000_000


def acting(*faults: Fault) -> ActingFaults:
    found = ActingFaults()
    for number, fault in enumerate(faults, 1):
        found.begin(Acting(number, fault))
    return found


def of(kind: str, learner: int = 0, **values: Any) -> Fault:
    return Fault(kind, 0, learner, **values)


@pytest.mark.parametrize(("kind", "up", "down"), [("cut", 1, 1), ("cut_up", 1, 0), ("cut_down", 0, 1)])
def test_a_cut_loses_its_directions_of_its_learner_alone(kind: str, up: bool, down: bool) -> None:
    found = acting(of(kind))
    assert [found.takes(0, d) for d in (TO_SYNCER, TO_LEARNER)] == [up, down]
    assert not any(found.takes(1, d) for d in (TO_SYNCER, TO_LEARNER))
    assert found.is_cut(0) and not found.is_cut(1)


def test_cuts_overlap() -> None:
    found = acting(of("cut"), of("cut_up"))
    assert found.end(0, 1) == Acting(1, of("cut"))
    assert found.is_cut(0, TO_SYNCER) and not found.is_cut(0, TO_LEARNER)
    assert found.end(0, 1) is None
    assert found.end(0, 2) is not None and not found.any


def test_a_count_of_lost_messages_is_used_up_once_and_survives_being_told_again() -> None:
    found = acting(of("lose_up", count=3))
    assert [found.takes(0, TO_SYNCER) for _ in range(2)] == [True, True]
    assert not found.takes(0, TO_LEARNER)
    found.set(0, found.of(0))
    assert found.used_up == []
    assert [found.takes(0, TO_SYNCER) for _ in range(2)] == [True, False]
    assert found.used_up == [1]


def test_loss_takes_its_share_by_its_seed() -> None:
    def lost(seed: int) -> list[bool]:
        found = acting(of("loss", share=0.25, seed=seed))
        return [found.takes(0, TO_SYNCER) for _ in range(4000)]

    assert lost(1) == lost(1) != lost(2)
    assert np.mean(lost(1)) == pytest.approx(0.25, abs=0.03)


def test_delays_add_up_and_jitter_stays_within_its_bounds() -> None:
    found = acting(of("delay", delay_ns=50 * MS, jitter_ns=20 * MS, seed=3), of("delay", delay_ns=100 * MS))
    drawn = []
    for _ in range(500):
        assert not found.takes(0, TO_LEARNER)
        drawn.append(found.added_ns(0, TO_LEARNER))
    assert 130 * MS <= min(drawn) < 135 * MS and 165 * MS < max(drawn) <= 170 * MS
    assert np.mean(drawn) == pytest.approx(150 * MS, rel=0.02)
    assert found.added_ns(1, TO_LEARNER) == 0


def test_a_delay_is_never_negative() -> None:
    found = acting(of("delay", jitter_ns=20 * MS, seed=3))
    for _ in range(100):
        found.takes(0, TO_SYNCER)
        assert 0 <= found.added_ns(0, TO_SYNCER) <= 20 * MS


def test_the_narrowest_link_counts_and_slow_downs_multiply() -> None:
    found = acting(of("bandwidth", bytes_per_s=1e6), of("bandwidth", bytes_per_s=1e4), of("slow", factor=2.0))
    assert (found.bytes_per_s(0), found.bytes_per_s(1)) == (1e4, 0.0)
    found.begin(Acting(9, of("slow", factor=3.0)))
    assert (found.slow_factor(0), found.slow_factor(1)) == (6.0, 1.0)
    found.end(0, 9)
    assert found.slow_factor(0) == 2.0


def test_a_fault_draws_from_its_own_seed_or_from_the_runs_and_its_number() -> None:
    assert seeded(of("loss", seed=5), 1, 0) == seeded(of("loss", seed=5), 2, 9) == 5
    derived = {seeded(of("loss"), number, run) for number in (1, 2) for run in (0, 1)}
    assert len(derived) == 4 and all(0 <= seed < 2**63 for seed in derived)
