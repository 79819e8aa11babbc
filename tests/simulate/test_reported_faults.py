"""Faults in recovery that users of distributed training report, in virtual time; each names its report."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.replay.runs import Live, live, replayed
from tests.replay.runs import config_of as trained
from tests.simulate.worlds import MS, SECOND, config_of, contributors, finished, of_kind, world_of
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind, Record, learner_of, process_of
from workbench.simulate.world import World
from workbench.tape.ledger import Ledger

SMALL: dict[str, Any] = {"period": 4, "fragments": 4, "overlap": 2, "recovery": "peer"}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "counting.bin"
    path.write_bytes(b"".join(b"%d " % number for number in range(60_000)))
    return path


def of_learner(records: list[Record], learner: int, *kinds: Kind) -> list[Record]:
    return [r for r in records if r.process == process_of(learner) and r.kind in kinds]


def test_q8_who_takes_longer_to_load_than_a_round_lasts_is_merged_all_the_same() -> None:
    """A process that needs 2 s to come up, rounds every .2 s."""
    config = config_of({"step_s": 0.2, "start_s": 2.0}, learners=3, quorum=2, rounds=120, **SMALL)
    world = finished(world_of(config, [Fault("kill", 6 * SECOND, learner=1, for_ns=100 * MS)]))
    healed = [r for r in of_kind(world, Kind.LEARNER_HEALED) if learner_of(r.peer) == 1][-1]
    opened = {r.round for r in of_kind(world, Kind.ROUND_OPENED) if r.time_ns > healed.time_ns}
    after = [r.detail["learners"] for r in of_kind(world, Kind.MERGED) if r.round in opened]
    assert healed.time_ns > 8 * SECOND and len(after) > 20
    assert next(n for n, learners in enumerate(after) if 1 in learners) <= 1, "one round late at the most"


def waits(world: World) -> list[tuple[Record, float]]:
    """Merges, with the grace that each waited [s]."""
    merges = of_kind(world, Kind.MERGED)
    return [(r, (r.detail["grace_ns"] - r.detail["quorum_ns"]) / SECOND) for r in merges]


def test_q13_the_window_fits_the_arrivals_and_forgets_a_straggler_at_once() -> None:
    """Arrivals at 0, .10 and .12 s after each other, then one 2 s late."""
    late = [Fault("delay", 1, learner=1, delay_ns=100 * MS), Fault("delay", 1, learner=2, delay_ns=120 * MS)]
    straggler = Fault("stall", 10 * SECOND, learner=2, for_ns=2 * SECOND)
    config = config_of({"step_s": 0.3, "jitter": 0.0}, learners=3, quorum=2, rounds=120, **SMALL)
    world = finished(world_of(config, [*late, straggler]))
    cap_s = config.grace_cap_steps * config.virtual.step_s
    told = waits(world)
    assert all(wait_s <= cap_s + 1e-9 for _, wait_s in told), "never above the cap"
    (ended,) = [r for r in of_kind(world, Kind.FAULT_ENDED) if r.reason == "stall"]
    during = [m for m, _ in told if 11 * SECOND < m.time_ns < ended.time_ns]
    assert during and all(2 not in m.detail["learners"] for m in during), "nobody waited the 2 s"
    back = next(n for n, (m, _) in enumerate(told) if m.time_ns > ended.time_ns and 2 in m.detail["learners"])
    gaps = [(b.time_ns - a.time_ns) / SECOND for (a, _), (b, _) in pairwise(told)]
    before_s = max(gaps[10:20])
    assert all(gap <= before_s * 1.05 for gap in gaps[back + 1 : back + 10]), "as fast as before one round later"


HALFWAY = [
    Fault("kill_syncer", 3450 * MS, for_ns=300 * MS),
    Fault("cut", 3250 * MS, learner=1, for_ns=3 * SECOND),
    Fault("kill", 3250 * MS, learner=2, for_ns=5 * SECOND),
]


@pytest.mark.parametrize("broken", HALFWAY, ids=lambda fault: fault.kind)
def test_r1_a_transfer_that_breaks_off_is_asked_for_again_and_ends_with_one_whole_state(broken: Fault) -> None:
    """The syncer dies, the joiner is cut off, or the donor dies before the state is there."""
    slow = Fault("bandwidth", SECOND, learner=1, for_ns=3 * SECOND, bytes_per_s=40_000.0)
    killed = Fault("kill", 3 * SECOND, learner=1, for_ns=100 * MS)
    config = config_of({"start_s": 0.1}, learners=3, quorum=2, rounds=200, **SMALL)
    world = finished(world_of(config, [slow, killed, broken]))
    asked = [r for r in of_kind(world, Kind.STATE_ASKED) if r.detail["joiner"] == process_of(1)]
    adopted = [r for r in of_learner(world.records, 1, Kind.STATE_ADOPTED) if r.reason == "peer"]
    assert asked[0].time_ns < broken.at_ns and asked[0].peer == process_of(2), "under way when it broke off"
    assert len(asked) == 2, "asked for again"
    if broken.kind == "kill":
        assert asked[1].peer == process_of(0), "of the next peer"
    left = {(r.process, r.version): r.digest for r in of_kind(world, Kind.STATE_LEFT)}
    assert len(adopted) == 1 and adopted[0].time_ns > broken.at_ns
    assert adopted[0].digest == left[adopted[0].peer, adopted[0].version], "a state is whole, or it is not used"
    assert any(1 in learners for learners in contributors(world)[-20:])


def test_r2_a_joiner_counts_for_nothing_before_it_has_sent_work_of_its_own() -> None:
    killed = Fault("kill", 3 * SECOND, learner=1, for_ns=SECOND)
    world = finished(world_of(config_of({"start_s": 0.1}, learners=3, quorum=2, rounds=120, **SMALL), [killed]))
    adopted = of_learner(world.records, 1, Kind.STATE_ADOPTED)[-1]
    own = [r for r in of_learner(world.records, 1, Kind.STEP_ENDED) if r.time_ns > adopted.time_ns]
    again = [r for r in of_kind(world, Kind.MERGED) if r.time_ns > 3200 * MS and 1 in r.detail["learners"]]
    first = again[0]
    place = first.detail["learners"].index(1)
    made = [r.tokens for r in own if r.step <= first.detail["steps_captured"][place]]
    assert first.detail["c_tokens"][place] == sum(made) > 0, "the peer's steps are not its own"
    assert first.detail["c_steps"][place] == len(made)
    ledger = Ledger(3, 4, [1] * 4)
    for record in world.records:
        ledger.apply(record)
        ledger.check_last()
    assert ledger.processed(1) == sum(r.tokens for r in of_learner(world.records, 1, Kind.STEP_ENDED))


def test_r7_two_that_come_back_together_get_states_that_are_not_behind_the_syncer() -> None:
    killed = [Fault("kill", 3 * SECOND, learner=m, for_ns=SECOND) for m in (1, 2)]
    world = finished(world_of(config_of({"start_s": 0.1}, learners=4, quorum=2, rounds=120, **SMALL), killed))
    adopted = [r for m in (1, 2) for r in of_learner(world.records, m, Kind.STATE_ADOPTED) if r.reason == "peer"]
    assert {r.process for r in adopted} == {process_of(1), process_of(2)}
    for taken in adopted:
        (asked,) = [r for r in of_kind(world, Kind.STATE_ASKED) if r.detail["joiner"] == taken.process]
        (copied,) = [r for r in of_kind(world, Kind.STATE_COPIED) if r.peer == taken.process]
        versions = newest_at(world, asked)
        assert asked.detail["stamp"] == versions, "what the syncer had when it asked"
        assert all(base >= version for base, version in zip(copied.detail["base"], versions, strict=True))
        donor_joined = next(r for r in of_kind(world, Kind.LEARNER_HEALED) if r.peer == taken.peer)
        assert donor_joined.time_ns < 3 * SECOND and taken.peer not in (process_of(1), process_of(2))


def newest_at(world: World, asked: Record) -> list[int]:
    versions = [0] * world.config.fragments
    for record in world.records[: world.records.index(asked)]:
        if record.kind == Kind.MERGED:
            versions[record.fragment] = record.version
    return versions


def test_r12_all_killed_and_one_blank_one_back_wipes_nothing(text: Path) -> None:
    """What was trained stands until a contribution that began from it is merged, and validation loss does not jump."""
    killed = [Fault("kill", 4 * SECOND, learner=m, for_ns=SECOND if m == 0 else 600 * SECOND) for m in range(3)]
    run = live(trained(text, rounds=100, quorum=1, recovery="peer", eval_every=4), killed)
    newest, after = newest_and_after(run, 4 * SECOND)
    assert len(after) > 20 and all(r.detail["learners"] == [0] for r in after)
    firsts = {r.fragment: r for r in reversed(after)}
    for fragment, first in firsts.items():
        assert first.detail["base_versions"] == [newest[fragment]] == [first.base_version], "anchored on what there was"
    losses = [(r.time_ns, r.value) for r in run.records if r.kind == Kind.EVALUATED]
    best = min(value for time_ns, value in losses if time_ns <= 4 * SECOND)
    assert all(value <= 1.05 * best for time_ns, value in losses if time_ns > 4 * SECOND)
    assert replayed(run).bit_exact


def newest_and_after(run: Live, time_ns: int) -> tuple[dict[int, int], list[Record]]:
    """Version of each fragment at a time, and the merges after it."""
    merges = [r for r in run.records if r.kind == Kind.MERGED]
    newest = {r.fragment: r.version for r in merges if r.time_ns <= time_ns}
    return newest, [r for r in merges if r.time_ns > time_ns]


def test_r14_a_batch_is_trained_once_or_is_listed_as_lost() -> None:
    config = config_of({"start_s": 0.1}, learners=2, quorum=1, rounds=160, **SMALL)
    world = finished(world_of(config, [Fault("kill", 5 * SECOND, learner=1, for_ns=SECOND)]))
    steps = [r.step for r in of_learner(world.records, 1, Kind.STEP_ENDED)]
    assert steps == list(range(1, len(steps) + 1)), "no batch twice, none left out"
    assert len({r.incarnation for r in of_learner(world.records, 1, Kind.STEP_ENDED)}) == 2
    ledger = Ledger(2, 4, [1] * 4)
    for record in world.records:
        ledger.apply(record)
    ledger.check()
    tokens = of_learner(world.records, 1, Kind.STEP_ENDED)[0].tokens
    lost = ledger.totals()["tokens_lost"]
    assert 0 < lost <= 2 * config.period * tokens, "what a killed process had made and not sent: an interval or two"


def test_r16_a_syncer_that_dies_goes_on_where_it_was_and_nobody_stops_stepping(text: Path) -> None:
    config = trained(text, rounds=40, recovery="peer")
    run = live(config, [Fault("kill_syncer", 0, at_merge=7, for_ns=SECOND)])
    merges = [r for r in run.records if r.kind == Kind.MERGED]
    (again,) = [r for r in run.records if r.kind == Kind.SYNCER_STARTED and r.reason == "restart"]
    before = [r for r in merges if r.incarnation < again.incarnation]
    assert len(before) >= 7 and len(merges) == 40, "none made twice, none lost"
    assert len({(r.fragment, r.version) for r in merges}) == 40
    down_ns = again.time_ns - before[-1].time_ns
    for learner in range(3):
        ends = [r.time_ns for r in of_learner(run.records, learner, Kind.STEP_ENDED) if r.time_ns < again.time_ns]
        assert max(b - a for a, b in pairwise(ends)) < 0.2 * SECOND < down_ns
    report = replayed(run)
    assert report.bit_exact, "the same parameters and the same momentum went on"
