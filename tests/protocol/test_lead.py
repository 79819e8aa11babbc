"""PROTOCOL section 9: how far a learner may run ahead of the oldest round that is not closed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.driving import SECOND, STEP_NS, Alone, begun
from workbench.protocol import messages as msg
from workbench.protocol.actions import StartStep
from workbench.protocol.events import Woken
from workbench.protocol.lead import must_wait
from workbench.protocol.records import Kind


def at(g: int, lead: int | None, closed_below: int = 1, closed: tuple[int, ...] = (), **keys: Any) -> Alone:
    """A learner that has made a step on every fragment and stands at g."""
    alone = Alone(**{"period": 2, "fragments": 2, "lead": lead, **keys})
    state = alone.state
    state.base, state.c_steps, state.g = [0, 0], [1, 1], g
    state.closed_below, state.closed = closed_below, list(closed)
    return alone


def test_without_a_lead_nobody_waits() -> None:
    alone = at(1000, None)
    alone.state.base, alone.state.c_steps = [-1, -1], [0, 0]
    assert not must_wait(alone.state)


@pytest.mark.parametrize(("g", "lead", "waits"), [
    (1, 0, True), (1, 1, False), (2, 1, True), (3, 1, True), (5, 4, True), (4, 4, False), (0, 0, False),
])  # fmt: skip
def test_after_step_g_every_round_up_to_g_minus_l_has_to_be_closed(g: int, lead: int, waits: bool) -> None:
    assert must_wait(at(g, lead).state) is waits


def test_notices_and_folds_close_rounds() -> None:
    assert must_wait(at(3, 0, closed=(1, 2)).state)
    assert not must_wait(at(3, 0, closed=(1, 2, 3)).state)


def test_lower_rounds_are_closed_whatever_became_of_their_messages() -> None:
    assert not must_wait(at(3, 0, closed_below=4).state)
    assert must_wait(at(4, 0, closed_below=4).state)


def test_rounds_that_no_fragment_is_due_at_are_none() -> None:
    alone = at(3, 0, period=4, fragments=1)
    assert not must_wait(alone.state)
    alone.state.g = 4
    alone.state.base, alone.state.c_steps = [0], [1]
    assert must_wait(alone.state)


def test_who_is_itself_what_a_waited_for_round_lacks_steps_on() -> None:
    alone = at(2, 0)
    alone.state.c_steps = [1, 0]  # round 1 is of fragment 1
    assert not must_wait(alone.state)
    alone.state.c_steps = [0, 1]  # round 2 is of fragment 0
    assert not must_wait(alone.state)
    alone.state.closed = [2]
    assert must_wait(alone.state), "round 2 is closed: nobody waits for fragment 0"


def test_a_new_process_makes_its_first_step_only_with_every_base() -> None:
    alone = Alone(period=2, fragments=2, lead=5).live()
    assert not alone.did(StartStep) and alone.state.waiting_since == alone.now
    alone.hears(alone.update(0, 1))
    assert not alone.did(StartStep)
    alone.hears(alone.update(0, 0), 7 * STEP_NS)
    assert [s.step for s in alone.did(StartStep)] == [1]
    alone.step()
    assert alone.records(Kind.STEP_ENDED)[0].detail["waited_ns"] == 7 * STEP_NS


def test_without_a_lead_a_new_process_steps_at_once() -> None:
    assert [s.step for s in Alone().live().did(StartStep)] == [1]


def waiting(lead: int = 0) -> Alone:
    """A learner with one fragment due at every step that waits for round 2."""
    alone = Alone(period=1, fragments=1, lead=lead).healed(steps=0)
    assert alone.state.g == 1 and not alone.state.stepping
    alone.hears(alone.update(1, t=1, last_merged=-1))
    alone.step()
    assert alone.state.g == 2 and not alone.state.stepping
    return alone


def test_waiting_is_idle_time_and_ends_with_the_update_folded() -> None:
    alone = waiting()
    steps = len(alone.did(StartStep))
    alone.hears(alone.update(2, t=2), 3 * STEP_NS)
    assert len(alone.did(StartStep)) == steps + 1 and alone.state.base == [2]
    alone.step()
    assert alone.records(Kind.STEP_ENDED)[-1].detail["waited_ns"] == 3 * STEP_NS
    alone.hears(alone.beat(closed_below=9))
    alone.step()
    assert alone.records(Kind.STEP_ENDED)[-1].detail["waited_ns"] == 0, "counted once"


def test_waiting_ends_with_a_notice() -> None:
    alone = waiting()
    alone.hears(alone.notice(3))
    assert not alone.state.stepping, "that of another round"
    alone.hears(alone.notice(2))
    assert alone.state.stepping


def test_waiting_ends_with_closed_below_in_any_message() -> None:
    for message in ("beat", "notice", "pull"):
        alone = waiting()
        more = {"closed_below": 3}
        if message == "beat":
            alone.hears(alone.beat(**more))
        elif message == "notice":
            alone.hears(alone.notice(9, **more))
        else:
            alone.hears(alone.pull(3, base=1, **more))
        assert alone.state.stepping, message
        assert all(t >= 3 for t in alone.state.closed)


def test_waiting_ends_with_closed_below_in_the_welcome() -> None:
    alone = waiting()
    alone.hears(alone.welcome(2, closed_below=3, rejoin=True))
    assert alone.state.stepping


def test_waiting_ends_when_the_lead_is_lifted() -> None:
    alone = waiting()
    settings = {**begun().to(0, msg.Welcome)[0].settings, "lead": None}
    alone.hears(msg.Change(1, 1, settings, 0, 1, 5, alone.clock))
    assert alone.state.stepping and alone.state.settings.lead is None


def test_a_waiting_learner_repeats_its_metadata_with_every_heartbeat() -> None:
    alone = waiting()
    count = len(alone.of(msg.Metadata))
    for _ in range(3):
        alone.hears(alone.beat(), SECOND // 4)
        alone.give(Woken(), SECOND // 4)
    repeated = alone.of(msg.Metadata)[count:]
    assert len(repeated) == 3 and not alone.of(msg.Heartbeat)
    assert {(m.n, m.g, m.waiting) for m in repeated} == {(2, 2, True)}


def test_a_skipped_round_sends_its_notice_to_every_connected_learner() -> None:
    talk = begun(lead=0)
    talk.step(0, 1, g=2)
    talk.says(0, talk.puppets[0].fragment(2, tokens=0))
    assert [n.round for m in (0, 1) for n in talk.to(m, msg.Notice)] == [2, 2]


def test_lead_zero_with_due_folds_goes_on_by_closed_below() -> None:
    """An update that is not due yet is not folded: the round is closed all the same."""
    alone = Alone(period=4, fragments=4, overlap=2, lead=0, fold_at="due").healed(steps=0)
    assert alone.state.g == 1 and not alone.state.stepping
    alone.hears(alone.update(1, p=1, t=1, closed_below=2))
    assert alone.state.base[1] == 0 and alone.state.stepping
