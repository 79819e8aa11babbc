from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.simulate.worlds import MS, SECOND, config_of, finished, of_kind, world_of
from workbench.config import RunConfig
from workbench.protocol.events import Received
from workbench.protocol.faults import Fault
from workbench.protocol.messages import Metadata
from workbench.protocol.records import SYNCER, Kind, Record, learner_of, process_of
from workbench.protocol.round_state import RoundState
from workbench.simulate.invariants import Watch
from workbench.simulate.world import World

PLAIN: dict[str, Any] = {"learners": 3, "rounds": 40, "period": 6, "fragments": 6, "overlap": 2}
CONFIG = config_of({"start_s": 0.2}, **PLAIN)
STORM = (
    Fault("kill", 1 * SECOND, learner=0, for_ns=SECOND),
    Fault("stall", 2 * SECOND, learner=1, for_ns=SECOND),
    Fault("kill_syncer", 3 * SECOND, for_ns=300 * MS),
)


def own_steps(world: World, learner: int) -> list[Record]:
    return [r for r in of_kind(world, Kind.STEP_ENDED) if learner_of(r.process) == learner]


# time


def test_one_seed_is_one_run() -> None:
    config = CONFIG.set({"virtual.loss": 0.02, "virtual.delay_jitter": 0.5})
    first, again = (finished(world_of(config, STORM)) for _ in range(2))
    assert first.records == again.records and first.events == again.events and first.now == again.now


def test_other_seeds_are_other_runs() -> None:
    runs = [finished(world_of(CONFIG.set(seed=seed))) for seed in range(3)]
    ends = [[r.time_ns for r in of_kind(world, Kind.STEP_ENDED)] for world in runs]
    assert ends[0] != ends[1] != ends[2] != ends[0]


def test_a_run_may_be_taken_in_pieces() -> None:
    whole, pieces = finished(world_of(CONFIG, STORM)), world_of(CONFIG, STORM)
    pieces.run(until_ns=int(1.234 * SECOND))
    assert pieces.now == int(1.234 * SECOND) and not pieces.finished
    pieces.run(until=lambda world: world.syncer.machine.state.merges == 20)
    assert pieces.syncer.machine.state.merges == 20
    assert finished(pieces).records == whole.records


def test_time_never_goes_back_and_equal_times_keep_their_order() -> None:
    world = world_of(CONFIG)
    seen: list[str] = []
    for name in "abc":
        world.at(2 * SECOND, seen.append, (name,))
    world.at(SECOND, seen.append, ("first",))
    before = -1
    while not world.finished:
        world.step()
        assert world.now >= before
        before = world.now
    assert seen == ["first", "a", "b", "c"]


def test_the_journal_gets_every_record_once_in_order() -> None:
    kept: list[Record] = []
    world = world_of(CONFIG, STORM)
    world.journal = lambda inputs, records: kept.extend(records)
    finished(world)
    assert kept == world.records
    for process in {r.process for r in kept}:
        assert [r.seq for r in kept if r.process == process] == list(
            range(1, sum(r.process == process for r in kept) + 1)
        )


# processes


def test_sigstop_lengthens_the_step_in_progress_and_keeps_inputs_in_order() -> None:
    config = config_of({"step_model": "fixed", "start_s": 0.098, "delay_s": 0.0005}, **PLAIN)
    world = finished(world_of(config, [Fault("stall", 850 * MS, learner=2, for_ns=330 * MS)]))
    lengths = {r.step: r.time_ns - r.detail["start_ns"] for r in own_steps(world, 2)}
    assert {n: length // MS for n, length in lengths.items() if length != 100 * MS} == {8: 430}
    assert {r.time_ns - r.detail["start_ns"] for r in own_steps(world, 0)} == {100 * MS}


def test_two_stops_overlap_until_the_last_is_over() -> None:
    config = config_of({"step_model": "fixed", "start_s": 0.098, "delay_s": 0.0005}, **PLAIN)
    both = [Fault("stall", 850 * MS, learner=2, for_ns=300 * MS), Fault("stall", 950 * MS, learner=2, for_ns=400 * MS)]
    world = finished(world_of(config, both))
    assert max(r.time_ns - r.detail["start_ns"] for r in own_steps(world, 2)) == 600 * MS


def test_a_process_that_is_stopped_while_it_starts_starts_when_it_goes_on() -> None:
    world = finished(world_of(CONFIG, [Fault("stall", 100 * MS, learner=2, for_ns=700 * MS)]))
    joined = next(r for r in of_kind(world, Kind.LEARNER_JOINED) if r.peer == process_of(2))
    assert 800 * MS <= joined.time_ns <= 810 * MS


def test_sigkill_ends_the_step_and_the_next_process_goes_on_with_the_next_number() -> None:
    world = finished(world_of(CONFIG, [Fault("kill", 1510 * MS, learner=1, for_ns=SECOND)]))
    steps = own_steps(world, 1)
    assert [r.step for r in steps] == list(range(1, len(steps) + 1))
    assert {r.incarnation for r in steps} == {1, 2}
    assert not [r for r in steps if r.detail["start_ns"] < 1510 * MS < r.time_ns]
    lost = next(r for r in of_kind(world, Kind.LEARNER_LOST) if r.peer == process_of(1))
    assert lost.reason in ("exit", "socket") and lost.time_ns <= 1510 * MS + 2 * MS
    started = [r for r in of_kind(world, Kind.PROCESS_STARTED) if r.peer == process_of(1)]
    assert [(r.value, r.time_ns) for r in started] == [(1.0, 0), (2.0, 2510 * MS)]


def test_a_kill_without_an_end_is_for_good() -> None:
    world = finished(world_of(CONFIG, [Fault("kill", 1510 * MS, learner=1)]))
    assert max(r.time_ns for r in own_steps(world, 1)) < 1510 * MS
    (fault,) = of_kind(world, Kind.FAULT_INJECTED)
    assert fault.detail["until_ns"] > world.now and fault.detail["effect"] == 1


def test_a_fault_on_a_dead_process_is_recorded_as_without_effect() -> None:
    world = finished(world_of(CONFIG, [Fault("kill", SECOND, 1), Fault("stall", 2 * SECOND, 1, SECOND)]))
    assert [(r.reason, r.detail["effect"]) for r in of_kind(world, Kind.FAULT_INJECTED)] == [("kill", 1), ("stall", 0)]


def test_a_slow_down_is_counted_as_injected_time() -> None:
    config = config_of({"step_model": "fixed", "start_s": 0.2}, **PLAIN)
    world = finished(world_of(config, [Fault("slow", SECOND, learner=0, for_ns=SECOND, factor=3.0)]))
    slowed = [r for r in own_steps(world, 0) if r.detail["injected_ns"]]
    assert {(r.time_ns - r.detail["start_ns"], r.detail["injected_ns"]) for r in slowed} == {(300 * MS, 200 * MS)}
    assert all(SECOND <= r.detail["start_ns"] <= 2 * SECOND for r in slowed) and len(slowed) in (3, 4)


def test_a_cut_link_loses_the_learner_after_the_heartbeat_limit_and_it_rejoins() -> None:
    world = finished(world_of(CONFIG.set(rounds=100), [Fault("cut", 1500 * MS, learner=2, for_ns=4 * SECOND)]))
    lost = next(r for r in of_kind(world, Kind.LEARNER_LOST) if r.peer == process_of(2))
    assert lost.reason == "heartbeat" and 3.4 * SECOND < lost.time_ns <= 3.5 * SECOND + 2 * MS
    again = [r for r in of_kind(world, Kind.LEARNER_JOINED) if r.peer == process_of(2)]
    assert [r.reason for r in again] == ["process", "rejoin"] and again[1].time_ns > 5.5 * SECOND
    steps = own_steps(world, 2)  # it trained on, and its records came later
    assert [r.step for r in steps] == list(range(1, len(steps) + 1))
    assert max(b.time_ns - a.time_ns for a, b in pairwise(steps)) < 200 * MS


def test_bad_numbers_are_dropped_and_the_fault_is_the_learners_own_record() -> None:
    world = finished(world_of(CONFIG, [Fault("nan", SECOND, learner=1, count=2)]))
    dropped = of_kind(world, Kind.FRAGMENT_DROPPED)
    assert [(r.reason, r.peer) for r in dropped] == [("nonfinite", process_of(1))] * 2
    assert [r.reason for r in of_kind(world, Kind.FAULT_APPLIED)] == ["nan"] * 2
    merges = {(r.round, m) for r in of_kind(world, Kind.MERGED) for m in r.detail["learners"]}
    assert not {(r.round, 1) for r in dropped} & merges


# the syncer's death around a merge


def struck_in(state: RoundState, config: RunConfig = CONFIG, at_ns: int = 1500 * MS) -> tuple[World, dict[str, Any]]:
    """A run whose syncer is killed when a round is in a state, and what was known at that moment."""
    kill = Fault("kill_syncer", at_ns, for_ns=400 * MS, round_state=state)
    watch = Watch(config.learners, config.fragments)
    world = world_of(config, [kill])
    world.observer = watch
    world.run(until=lambda w: bool(w.striker.struck))
    assert not world.syncer.alive
    machine = world.syncer.machine.state
    known = {
        "rounds": {r.t: RoundState(r.state) for r in machine.rounds.values()},
        "records": len(world.records),
        "bases": [list(p.machine.state.base) for p in world.learners.values()],
        "ns": world.now,
    }
    return finished(world), known


def seen_by_learners(world: World) -> set[tuple[int, int]]:
    """(fragment, version) of every merge that a learner folded."""
    return {(r.fragment, r.version) for r in of_kind(world, Kind.UPDATE_FOLDED) if r.version > 0}


def test_a_kill_between_the_merged_record_and_its_commit_loses_no_merge() -> None:
    world, known = struck_in(RoundState.COMMITTING)
    (t,) = [t for t, state in known["rounds"].items() if state == RoundState.COMMITTING]
    before, after = world.records[: known["records"]], world.records[known["records"] :]
    merged = [r for r in of_kind(world, Kind.MERGED) if r.round == t]
    assert len(merged) == 1 and merged[0] in before
    commits = [r for r in of_kind(world, Kind.MERGE_COMMITTED) if r.round == t]
    assert [(r.reason, r in after) for r in commits] == [("recovered", True)]
    assert not [r for r in before if r.kind == Kind.UPDATE_SENT and r.round == t]
    again = [r for r in after if r.kind == Kind.UPDATE_SENT and r.round == t]
    assert {r.peer for r in again} == {process_of(m) for m in range(3)}  # the re-send rule brings it to all
    assert t not in {r.round for r in of_kind(world, Kind.ROUND_RESTARTED)}


@pytest.mark.parametrize("state", [RoundState.PULLING, RoundState.MERGING])
def test_a_merge_that_is_not_in_the_journal_never_happened(state: RoundState) -> None:
    world, known = struck_in(state)
    (t,) = [t for t, s in known["rounds"].items() if s == state]
    before, after = world.records[: known["records"]], world.records[known["records"] :]
    assert not [r for r in before if r.kind == Kind.MERGED and r.round == t]
    assert [r for r in after if r.kind == Kind.ROUND_RESTARTED and r.round == t]
    merged = [r for r in after if r.kind == Kind.MERGED and r.round == t]
    assert len(merged) == 1 and merged[0].time_ns > known["ns"] + 400 * MS
    assert all(base[merged[0].fragment] < merged[0].version for base in known["bases"])


@pytest.mark.parametrize("state", list(RoundState))
def test_whatever_the_moment_versions_are_made_once_and_none_that_was_seen_is_lost(state: RoundState) -> None:
    world, known = struck_in(state, CONFIG.set(quorum=2))
    made = [(r.fragment, r.version) for r in of_kind(world, Kind.MERGED)]
    assert len(made) == len(set(made)) == world.config.rounds
    assert {(r.fragment, r.version) for r in of_kind(world, Kind.MERGE_COMMITTED)} == set(made)
    assert seen_by_learners(world) <= set(made)
    restarted = world.records.index(next(r for r in of_kind(world, Kind.SYNCER_STARTED) if r.reason == "restart"))
    versions = [0] * 6
    for record in world.records[:restarted]:
        if record.kind == Kind.MERGED:
            versions[record.fragment] = record.version
    for base in known["bases"]:
        assert all(held <= version for held, version in zip(base, versions, strict=True))


def test_learners_train_on_while_the_syncer_is_away() -> None:
    world, known = struck_in(RoundState.OPEN)
    down = (known["ns"], known["ns"] + 400 * MS)
    for learner in range(3):
        ends = [r.time_ns for r in own_steps(world, learner)]
        assert sum(down[0] < end < down[1] for end in ends) >= 3


# messages


class Arrivals:
    """What the syncer is told, with the time."""

    def __init__(self) -> None:
        self.metadata: list[tuple[int, int, int]] = []

    def on_input(self, world: World, process: int, event: Any) -> None:
        if process == SYNCER and isinstance(event, Received) and isinstance(event.message, Metadata):
            self.metadata.append((world.now, event.message.learner, event.message.n))

    def on_action(self, world: World, process: int, action: Any) -> None:
        """Not of interest."""

    def after_event(self, world: World) -> None:
        """Not of interest."""


@pytest.mark.parametrize(("delay_ms", "taken"), [(0.5, True), (5.0, False)])
def test_what_a_killed_process_had_sent_arrives_and_counts_unless_its_end_was_known(
    delay_ms: float, taken: bool
) -> None:
    """Step 6 ends at 700 ms and SIGKILL comes 0.2 ms later; the supervisor says so 1 ms after that."""
    start_s = 0.1 - 4 * delay_ms / 1000  # connection, JOIN and WELCOME
    config = config_of({"step_model": "fixed", "start_s": start_s, "delay_s": delay_ms / 1000}, **PLAIN)
    world = world_of(config, [Fault("kill", int(700.2 * MS), learner=1, for_ns=SECOND)])
    world.observer = arrivals = Arrivals()
    finished(world)
    sent = [(at, n) for at, learner, n in arrivals.metadata if learner == 1 and at < SECOND]
    assert sent[-1] == (700 * MS + int(delay_ms * MS), 6)
    first, second = ([r.step for r in own_steps(world, 1) if r.incarnation == i] for i in (1, 2))
    assert first[-1] == second[0] - 1 == (6 if taken else 5)  # no record of it: the number is used again


def test_losses_slow_a_run_down_but_do_not_stop_it() -> None:
    calm, lossy = (finished(world_of(CONFIG.set({"virtual.loss": loss}))) for loss in (0.0, 0.1))
    assert len(of_kind(lossy, Kind.MERGED)) == len(of_kind(calm, Kind.MERGED)) == 40
    assert lossy.network.count > 0 and lossy.now > calm.now
    for learner in range(3):
        steps = own_steps(lossy, learner)
        assert [r.step for r in steps] == list(range(1, len(steps) + 1))


def test_a_thin_link_delays_fragments_and_not_heartbeats() -> None:
    """4 kB over 20 kB/s take 0.2 s each way: nobody is declared lost, and merges still come."""
    world = finished(world_of(CONFIG.set({"virtual.bandwidth": 20_000.0})))
    assert not [r for r in of_kind(world, Kind.LEARNER_LOST) if r.reason == "heartbeat"]
    transfer = [
        (r.time_ns - r.detail["captured_ns"]) / SECOND
        for r in of_kind(world, Kind.FRAGMENT_ARRIVED, Kind.FRAGMENT_DROPPED)
    ]
    assert min(transfer) == pytest.approx(4096 / 20_000 + 0.001, abs=0.001)
    assert np.median(np.diff([r.time_ns for r in own_steps(world, 0)])) < 0.12 * SECOND
