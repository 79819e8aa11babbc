"""The state at an event is that of the machines, and what folding the records one by one gives."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.tape.examples import run_records
from tests.tape.virtual_runs import Look, Taped, taped
from workbench.protocol.learner_state import LearnerState
from workbench.protocol.records import EVALUATOR, SYNCER, Kind, Record, learner_of, process_of
from workbench.protocol.round_state import PullState, RoundState
from workbench.protocol.settings import values_in_force
from workbench.protocol.syncer_state import SyncerState
from workbench.tape import JournalWriter, Recorder, TapeError, open_tape
from workbench.tape.ledger import Ledger
from workbench.tape.moment import LearnerThen, Moment, RoundThen

SEEDS = (0, 1, 5, 6, 21, 33)
"""Schedules with every kind of fault, rule and live change between them."""


@pytest.fixture(scope="module", params=SEEDS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Taped:
    return taped(request.param, tmp_path_factory.mktemp("scrub") / "run")


SHOWN = {
    RoundState.OPEN: ("OPEN",),
    RoundState.READY: ("READY", "GRACE", "PULLING"),
    RoundState.GRACE: ("GRACE",),
    RoundState.PULLING: ("PULLING",),
    RoundState.MERGING: ("PULLING",),
    RoundState.COMMITTING: ("COMMITTING",),
}
"""State of a round in the machine to those that its records may show: two transitions have none."""
ANSWERED = {
    PullState.OUTSTANDING: ("asked",),
    PullState.ARRIVED: ("arrived",),
    PullState.REFUSED: ("refused",),
    PullState.DROPPED: ("dropped",),
    PullState.GONE: ("asked", "dropped"),
    PullState.LIMIT: ("asked", "dropped"),
}


def compare_syncer(then: Moment, state: SyncerState) -> None:
    """Versions, rounds, membership and settings are the machine's."""
    assert then.versions == tuple(state.versions)
    assert (then.merges, then.began, bool(then.ended)) == (state.merges, state.began, state.finished)
    assert (then.syncer_starts, then.quorum_lost) == (state.incarnation, state.quorum_lost)
    assert [(r.round, r.fragment, r.revision) for r in then.rounds] == [
        (r.t, r.p, r.revision) for r in state.rounds.values()
    ]
    for shown, round_ in zip(then.rounds, state.rounds.values(), strict=True):
        assert shown.state in SHOWN[RoundState(round_.state)]
        assert shown.answers.keys() == round_.pulls.keys()
        for learner, pull in round_.pulls.items():
            assert shown.answers[learner] in ANSWERED[PullState(pull.state)]
    for m, member in state.members.items():
        shown_learner = then.learners[m]
        assert shown_learner.connected == member.connected
        assert shown_learner.quarantined == member.quarantined
        assert shown_learner.incarnation == member.incarnation
        assert shown_learner.process_number == member.process_number
        assert shown_learner.last_merged == tuple(member.last_merged)
    assert then.revision == state.book.revision
    for key, value in then.settings.items():
        if not key.startswith("inner."):
            assert value == values_in_force_of(state)[key]


def values_in_force_of(state: SyncerState) -> dict[str, Any]:
    from workbench.config import RunConfig

    return values_in_force(RunConfig(), state.book)


def compare_learner(then: LearnerThen, state: LearnerState) -> None:
    """Steps, bases and counters are the machine's; g as far as it is recorded."""
    assert then.n == state.n
    assert then.base == tuple(state.base)
    assert then.c_steps == tuple(state.c_steps)
    assert then.c_tokens == tuple(state.c_tokens)
    assert then.healed == state.healed
    assert then.revision == state.revision
    assert then.g == state.g or then.g < state.g <= state.g_seen


def test_a_moment_is_what_the_machines_were(run: Taped) -> None:
    compared = 0
    for look in run.looks:
        then = run.tape.wb.at(look.records - 1)
        if look.syncer is not None:
            compare_syncer(then, look.syncer)
        for m, state in look.learners.items():
            compare_learner(then.learners[m], state)
            compared += 1
    assert compared > 20


def test_the_last_moment_is_the_machines_final_state(run: Taped) -> None:
    last: Look = run.looks[-1]
    then = run.tape.wb.at(-1)
    assert (then.event, last.records) == (len(run.records) - 1, len(run.records))
    assert last.syncer is not None
    compare_syncer(then, last.syncer)
    assert then.ended == "rounds" and not then.rounds
    for m, state in last.learners.items():
        compare_learner(then.learners[m], state)


class Folding:
    """What records say, taken one by one."""

    def __init__(self, learners: int, fragments: int) -> None:
        self.ledger = Ledger(learners, fragments, [1] * fragments)
        self.alive: dict[int, bool] = {}
        self.faults: dict[int, tuple[int, str, int]] = {}
        self.steps: Counter[int] = Counter()
        self.tokens: Counter[int] = Counter()
        self.loss: dict[int, float] = {}
        self.merged: Counter[int] = Counter()
        self.uncommitted: dict[tuple[int, int], list[int]] = {}
        self.stalled: dict[int, bool] = {}
        self.validation: tuple[int, float] | None = None
        self.now = 0

    def take(self, r: Record) -> None:
        self.ledger.apply(r)
        self.now = r.time_ns
        m = learner_of(r.process)
        peer = learner_of(r.peer)
        if r.kind == Kind.STEP_ENDED:
            self.steps[m] += 1
            self.tokens[m] += r.tokens
            self.loss[m] = r.value
            self.stalled[m] = False
        elif r.kind in (Kind.PROCESS_STARTED, Kind.PROCESS_ENDED):
            self.alive[peer] = r.kind == Kind.PROCESS_STARTED
        elif r.kind == Kind.FAULT_INJECTED and r.detail.get("effect", 1):
            self.faults[r.detail["fault"]] = (r.peer, r.reason, r.detail.get("until_ns", 0))
        elif r.kind == Kind.FAULT_ENDED:
            self.faults.pop(r.detail["fault"], None)
        elif r.kind == Kind.MERGED:
            self.uncommitted[r.fragment, r.version] = r.detail["learners"]
        elif r.kind == Kind.MERGE_COMMITTED:
            for learner in self.uncommitted.pop((r.fragment, r.version)):
                self.merged[learner] += 1
        elif r.kind in (Kind.LEARNER_STALLED, Kind.LEARNER_JOINED, Kind.LEARNER_LOST):
            self.stalled[peer] = r.kind == Kind.LEARNER_STALLED
        elif r.kind == Kind.SYNCER_STARTED:
            self.stalled.clear()
        elif r.kind == Kind.EVALUATED and r.process == EVALUATOR:
            self.validation = (r.steps, r.value)

    def acting(self, m: int) -> tuple[str, ...]:
        mine = [(kind, until) for peer, kind, until in self.faults.values() if peer == process_of(m)]
        return tuple(kind for kind, until in mine if until < 0 or until > self.now)


def test_a_moment_is_what_folding_one_by_one_gives(run: Taped) -> None:
    config = run.config
    folding = Folding(config.learners, config.fragments)
    for event, record in enumerate(run.records):
        folding.take(record)
        if event % 17 and event != len(run.records) - 1:
            continue
        then = run.tape.wb.at(event)
        assert then.ledger == pytest.approx(folding.ledger.totals())
        assert then.validation == folding.validation
        assert sum(then.recorded.lengths.values()) == event + 1
        for learner in then.learners:
            m = learner.learner
            assert learner.alive == folding.alive.get(m, False)
            assert learner.faults == folding.acting(m)
            assert (learner.steps, learner.tokens) == (folding.steps[m], folding.tokens[m])
            assert learner.loss == folding.loss[m] if m in folding.loss else learner.loss != learner.loss
            assert learner.merged == folding.merged[m]
            assert learner.stalled == (folding.stalled.get(m, False) and learner.connected)


def test_a_time_is_the_last_event_recorded_by_then(run: Taped) -> None:
    began = next(r.time_ns for r in run.records if r.kind == Kind.ROUNDS_BEGAN)
    own = [(event, r.time_ns - began) for event, r in enumerate(run.records) if r.process == SYNCER]
    for event, time_ns in own[:: len(own) // 9]:
        later = next((e for e, t in own if t > time_ns), len(run.records))
        assert run.tape.wb.at(time_s=time_ns * 1e-9 + 1e-10).event == later - 1 >= event
    assert run.tape.wb.at(time_s=1e6).event == len(run.records) - 1


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A tape without a configuration."""
    folder = tmp_path_factory.mktemp("plain") / "run"
    folder.mkdir()
    with JournalWriter(folder / "journal", {"run_id": "plain"}) as journal:
        journal.append(run_records(rounds=4, learners=2))
    with Recorder(folder):
        pass
    yield open_tape(folder)


def test_a_tape_without_a_configuration_has_moments_too(plain: Any) -> None:
    then: Moment = plain.wb.at(-1)
    assert (then.settings, then.ended, then.merges, then.versions) == ({}, "rounds", 4, (2, 2))
    assert then.validation == (4, 2.0)
    told = repr(then).splitlines()
    assert told[0].startswith(f"event {then.event}, {then.time_s:.3f} s from the start of rounds: 4 merges, ended (")
    assert told[1] == "fragments at versions 2, 2"
    assert (
        told[2]
        == "L0: alive, healed; own step 3, global step 4, loss 2 nat per byte, fragments folded up to versions 2, 2"
    )
    assert then.to_dict()["learners"][0]["base"] == (2, 2)
    middle: Moment = plain.wb.at(int(plain.wb.events(Kind.FRAGMENT_ARRIVED)["event"].values[0]))
    assert middle.rounds == (RoundThen(0, 0, 0, 1, "OPEN", middle.rounds[0].since_s, {0: "arrived"}),)
    assert "round 0 of fragment 0 is open: nobody is ready yet; L0 arrived" in repr(middle)


@pytest.mark.parametrize("arguments", [{}, {"event": 1, "time_s": 1.0}])
def test_a_moment_is_one_event_or_one_time(plain: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(TapeError, match="a moment is one event or one time"):
        plain.wb.at(**arguments)


def test_before_anything_and_behind_everything_there_is_no_moment(plain: Any) -> None:
    with pytest.raises(TapeError, match="nothing was recorded by -999 s from the start of rounds"):
        plain.wb.at(time_s=-999)
    with pytest.raises(TapeError, match="there is no event 999"):
        plain.wb.at(999)
    assert plain.wb.at(0).event == 0
    assert list(itertools.islice(plain.wb.at(0).recorded.lengths.items(), 1)) == [("syncer", 1)]
