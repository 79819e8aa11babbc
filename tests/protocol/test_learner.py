"""PROTOCOL sections 1, 8, 10 and 14 at a learner: its life, its boundary, its heartbeats."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.driving import MS, SECOND, STEP_NS, TOKENS, Alone, begun
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol.actions import Adopt, Connect, Fold, Leave, Publish, Send, StartStep
from workbench.protocol.records import Kind


def settings_of(**changes: Any) -> dict[str, Any]:
    return {**begun().to(0, msg.Welcome)[0].settings, **changes}


def changed(alone: Alone, revision: int = 1, **values: Any) -> msg.Change:
    return msg.Change(alone.state.incarnation, revision, settings_of(**values), 0, 1, 5, alone.clock)


def ticking(alone: Alone, seconds: float, heard: bool = True) -> None:
    """Time passes: the machine is woken when it wants to be, and the syncer's heart beats or not."""
    end = alone.now + int(seconds * SECOND)
    while alone.machine.wake_at <= end:
        alone.now = alone.machine.wake_at
        if heard:
            alone.hears(alone.beat())
        alone.give(ev.Woken())
    alone.now = end


# joining


def test_a_process_connects_joins_adopts_and_steps() -> None:
    alone = Alone()
    alone._keep(alone.machine.start(0))
    assert [type(a) for a in alone.orders] == [Connect]
    alone.give(ev.Connected(1))
    (join,) = alone.of(msg.Join)
    assert (join.learner, join.process_number, join.n, join.g, join.base, join.has_state) == (0, 1, 0, 0, [-1], False)
    done = alone.hears(alone.welcome(3, first_step=41, first_seq=17, origin=12))
    assert [a.source for a in done if isinstance(a, Adopt)] == ["initial"]
    done = alone.give(ev.Adopted(5))
    assert [type(a) for a in done] == [Publish, StartStep]
    (start,) = alone.did(StartStep)
    assert (start.step, start.global_step, start.batch, start.accumulation, start.rate_scale) == (41, 0, 8, 1, 1.0)
    (adopted,) = alone.records(Kind.STATE_ADOPTED)
    assert (adopted.seq, adopted.step, adopted.digest, adopted.cause, adopted.incarnation) == (17, 40, 5, (0, 12), 3)


def test_join_is_repeated_until_welcomed() -> None:
    alone = Alone()
    alone._keep(alone.machine.start(0))
    alone.give(ev.Connected(1))
    ticking(alone, 1.9, heard=False)
    assert len(alone.of(msg.Join)) == 2 and not alone.of(msg.Heartbeat)
    alone.hears(alone.welcome())
    alone.give(ev.Adopted(5))
    ticking(alone, 1.0)
    assert len(alone.of(msg.Join)) == 2


def test_a_second_welcome_of_an_incarnation_changes_nothing() -> None:
    alone = Alone().live()
    alone.step()
    done = alone.hears(alone.welcome(1, first_step=99))
    assert done == [] and alone.state.n == 1


def test_a_learner_with_state_ignores_the_first_numbers() -> None:
    alone = Alone().healed(steps=3)
    n, seq, base = alone.state.n, alone.state.seq, list(alone.state.base)
    alone.hears(alone.welcome(2, first_step=99, first_seq=99, rejoin=True))
    assert (alone.state.n, alone.state.seq, alone.state.base, alone.state.incarnation) == (n, seq, base, 2)
    assert len(alone.did(Adopt)) == 1, "it keeps parameters, moments and base"


def test_records_made_before_a_state_are_none() -> None:
    alone = Alone()
    alone._keep(alone.machine.start(0))
    alone.give(ev.FaultActed("nan", 0, {}))
    assert alone.state.seq == 0 and not alone.state.outbox.unacked
    alone = Alone().live()
    alone.give(ev.FaultActed("nan", 0, {"round": 3}))
    (fault,) = alone.records(Kind.FAULT_APPLIED)
    assert (fault.reason, fault.fragment, fault.detail) == ("nan", 0, {"round": 3})


# the boundary


def test_the_boundary_has_its_order() -> None:
    alone = Alone(period=2, fragments=2).healed()
    n = alone.contribute(2).step
    alone.hears(alone.update(1, t=2, last_merged=1, last_merged_step=n))
    alone.hears(changed(alone, fold_alpha=0.9))
    before = alone.state.seq
    done = alone.step()
    kinds = [Kind(r.kind).name for r in alone.state.outbox.unacked if r.seq > before]
    assert kinds == ["STEP_ENDED", "SETTING_APPLIED", "CONTRIBUTION_ACKNOWLEDGED", "UPDATE_FOLDED"]
    names = [type(a.message).__name__ if isinstance(a, Send) else type(a).__name__ for a in done]
    assert names[:3] == ["Publish", "Metadata", "Fold"], "counters, host copy, METADATA; then what came"
    assert names[-1] == "StartStep"
    metadata = alone.of(msg.Metadata)[-1]
    assert metadata.base == [0, 0] and [r.kind for r in metadata.records][-1] == Kind.STEP_ENDED


def test_a_step_counts_for_every_fragment() -> None:
    alone = Alone(period=2, fragments=2).healed(steps=2)
    alone.step(tokens=7, loss=1.5)
    state = alone.state
    assert (state.n, state.g, state.c_steps, state.c_tokens) == (4, 4, [3, 3], [2 * TOKENS + 7] * 2)
    ended = alone.records(Kind.STEP_ENDED)[-1]
    assert (ended.step, ended.global_step, ended.steps, ended.tokens, ended.value) == (4, 3, 1, 7, 1.5)
    assert ended.detail["end_ns"] - ended.detail["start_ns"] == STEP_NS == alone.of(msg.Metadata)[-1].step_ns


def test_metadata_after_every_step_with_everything_that_the_syncer_decides_by() -> None:
    alone = Alone(period=2, fragments=2).healed(steps=2)
    metadata = alone.of(msg.Metadata)[-1]
    assert (metadata.n, metadata.g, metadata.c_steps, metadata.base) == (3, 3, [2, 2], [0, 0])
    assert (metadata.healed, metadata.waiting, metadata.origin, metadata.incarnation) == (
        True,
        False,
        alone.state.seq,
        1,
    )
    assert len(alone.of(msg.Metadata)) == 3


def test_healed_is_every_base_and_a_step_made() -> None:
    alone = Alone(period=2, fragments=2).live()
    alone.step()
    assert not alone.state.healed
    alone.hears(alone.update(0, 0))
    alone.step()
    assert not alone.state.healed
    alone.hears(alone.update(0, 1))
    alone.step()
    assert min(alone.state.base) == 0
    assert not alone.of(msg.Metadata)[-1].healed, "folded after this step"
    alone.step()
    assert alone.of(msg.Metadata)[-1].healed


def test_a_learner_never_waits_for_the_network() -> None:
    alone = Alone().healed()
    alone.give(ev.Disconnected(1))
    for _ in range(5):
        assert [a.step for a in alone.step() if isinstance(a, StartStep)] == [alone.state.n + 1]
    assert len(alone.of(msg.Metadata)) == 2, "nothing is sent to nobody"


# settings


def test_a_change_acts_at_the_next_boundary_and_says_so() -> None:
    alone = Alone().healed()
    alone.hears(changed(alone, 3, batch=2, accumulation=4, rate_scale=0.5, fold="blend", fold_alpha=0.1))
    assert alone.state.settings.batch == 8 and not alone.records(Kind.SETTING_APPLIED)
    alone.hears(alone.update(1, t=2))
    alone.step()
    (applied,) = alone.records(Kind.SETTING_APPLIED)
    assert (applied.setting, applied.step) == (3, alone.state.n) and applied.detail["values"]["batch"] == 2
    start = alone.did(StartStep)[-1]
    assert (start.batch, start.accumulation, start.rate_scale) == (2, 4, 0.5)
    assert alone.did(Fold)[-1].rule == "blend", "settings come before folds"


def test_the_latest_revision_counts_and_older_ones_do_not() -> None:
    alone = Alone().healed()
    alone.hears(changed(alone, 2, batch=2))
    alone.hears(changed(alone, 1, batch=1))
    alone.step()
    assert (alone.state.settings.batch, alone.state.revision) == (2, 2)
    alone.hears(changed(alone, 2, batch=5))
    alone.step()
    assert alone.state.settings.batch == 2 and len(alone.records(Kind.SETTING_APPLIED)) == 1


def test_metadata_names_the_revision_that_was_received() -> None:
    alone = Alone().healed()
    assert alone.of(msg.Metadata)[-1].revision == 0
    alone.hears(changed(alone, 4))
    alone.step()
    assert alone.of(msg.Metadata)[-1].revision == 4


def test_a_welcome_brings_the_settings_of_now() -> None:
    alone = Alone()
    alone._keep(alone.machine.start(0))
    alone.give(ev.Connected(1))
    alone.hears(alone.welcome(revision=2, settings=settings_of(batch=3)))
    alone.give(ev.Adopted(5))
    assert alone.did(StartStep)[0].batch == 3
    assert [(r.setting, r.step) for r in alone.records(Kind.SETTING_APPLIED)] == [(2, 0)]


# heartbeats and connections


def test_heartbeats_go_out_in_the_middle_of_a_long_step() -> None:
    alone = Alone().healed()
    ticking(alone, 3.0)
    assert len(alone.of(msg.Heartbeat)) == 6 and alone.state.stepping


def test_a_silent_syncer_is_reached_anew_and_training_goes_on() -> None:
    alone = Alone().healed()
    ticking(alone, 2.6, heard=False)
    assert len(alone.did(Connect)) >= 2 and alone.state.connection == -1
    alone.step()
    assert alone.state.stepping
    alone.give(ev.Connected(2))
    join = alone.of(msg.Join)[-1]
    assert (join.has_state, join.healed, join.n, join.base) == (True, True, alone.state.n, [0])


def test_a_closed_connection_is_reached_anew_every_second() -> None:
    alone = Alone().healed()
    alone.give(ev.Disconnected(1))
    count = len(alone.did(Connect))
    ticking(alone, 3.1, heard=False)
    assert len(alone.did(Connect)) == count + 3


def test_an_old_connections_end_is_nothing() -> None:
    alone = Alone().healed()
    alone.give(ev.Disconnected(77))
    assert alone.state.welcomed


def test_a_learner_woken_late_was_itself_stopped() -> None:
    alone = Alone().healed()
    connects = len(alone.did(Connect))
    alone.now = alone.machine.wake_at + 30 * SECOND
    alone.give(ev.Woken())
    assert len(alone.did(Connect)) == connects, "the syncer was not silent for 30 s: nobody listened"
    assert alone.now - alone.state.last_heard < SECOND


def test_messages_of_another_incarnation_are_nothing() -> None:
    alone = Alone().healed()
    heard = alone.state.last_heard
    alone.hears(msg.Beat(9, 0, 5, alone.clock), 10 * MS)
    assert alone.state.last_heard == heard and alone.state.closed_below == 1


# the end


def test_an_end_in_mid_step_is_followed_at_the_boundary() -> None:
    alone = Alone().healed()
    alone.hears(msg.End(1, "rounds", 0, 1, alone.clock))
    assert not alone.did(Leave)
    done = alone.step()
    assert alone.of(msg.Metadata)[-1].leaving
    assert [a.reason for a in done if isinstance(a, Leave)] == ["rounds"] and not alone.state.stepping
    assert alone.step() == [] and alone.hears(alone.beat()) == []


def test_an_end_while_waiting_is_followed_at_once() -> None:
    alone = Alone(lead=0).live()
    alone.hears(msg.End(1, "rounds", 0, 1, alone.clock))
    assert alone.of(msg.Metadata)[-1].leaving and [a.reason for a in alone.did(Leave)] == ["rounds"]


@pytest.mark.parametrize("waiting", [False, True])
def test_a_learner_that_is_asked_to_leave_says_so_at_its_boundary(waiting: bool) -> None:
    alone = Alone(lead=0).live() if waiting else Alone().healed()
    alone.give(ev.LeaveAsked("interrupted"))
    if not waiting:
        assert not alone.did(Leave), "the step that is in progress is not thrown away"
        alone.step()
    assert alone.of(msg.Metadata)[-1].leaving and [a.reason for a in alone.did(Leave)] == ["interrupted"]


def test_its_first_join_alone_carries_who_it_is() -> None:
    alone = Alone()
    alone.state.identity = {"host": "far"}
    alone._keep(alone.machine.start(0))
    alone.give(ev.Connected(1))
    alone.hears(alone.welcome())
    alone.give(ev.Adopted(5))
    alone.give(ev.Connected(2))
    assert [join.identity for join in alone.of(msg.Join)] == [{"host": "far"}, {}]


def test_a_process_that_is_not_wanted_leaves_before_any_welcome() -> None:
    alone = Alone()
    alone._keep(alone.machine.start(0))
    alone.give(ev.Connected(1))
    alone.hears(msg.End(-1, "superseded", 0, 1, ()))
    assert [a.reason for a in alone.did(Leave)] == ["superseded"]


@pytest.mark.parametrize("rounds", [1, 3])
def test_no_step_count_of_its_own_ends_a_learner(rounds: int) -> None:
    alone = Alone(rounds=rounds).healed(steps=50)
    assert alone.state.stepping and not alone.did(Leave)
