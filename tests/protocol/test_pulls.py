"""PROTOCOL section 5: how a learner answers a PULL, at once and in the middle of a step."""

from __future__ import annotations

import pytest

from tests.protocol.driving import MS, SECOND, TOKENS, Alone
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol.actions import Capture, ForgetCapture, Release
from workbench.protocol.messages import BULK
from workbench.protocol.records import Kind


def test_it_is_answered_in_the_middle_of_a_step_from_the_last_published_copy() -> None:
    alone = Alone().healed(steps=3)
    assert alone.state.stepping
    n = alone.state.n
    done = alone.hears(alone.pull(2, codec="bf16"), 50 * MS)
    assert [(a.round, a.fragment, a.step, a.codec) for a in done if isinstance(a, Capture)] == [(2, 0, n, "bf16")]
    fragment = None
    alone.give(ev.Captured(2, 0, 99, 400, 7))
    fragment = alone.of(msg.Fragment)[-1]
    assert (fragment.round, fragment.fragment, fragment.base_version, fragment.codec) == (2, 0, 0, "bf16")
    assert (fragment.step, fragment.steps, fragment.tokens) == (n, 3, 3 * TOKENS)
    assert (fragment.digest, fragment.nbytes, fragment.handle, fragment.captured_ns) == (99, 400, 7, alone.now)
    assert alone.sent[-1][0] == BULK and alone.state.stepping


def test_counters_are_those_captured_with_the_copy() -> None:
    """The step ends between the PULL and the encoded copy: what is sent is what was captured."""
    alone = Alone().healed(steps=2)
    n = alone.state.n
    alone.hears(alone.pull(2))
    alone.step()
    alone.give(ev.Captured(2, 0, 99, 400, 7))
    fragment = alone.of(msg.Fragment)[-1]
    assert (fragment.step, fragment.steps) == (n, 2)


def test_the_capture_is_recorded_before_it_is_sent_with_its_cause() -> None:
    alone = Alone().healed()
    pull = alone.pull(2)
    alone.hears(pull)
    alone.give(ev.Captured(2, 0, 99, 400, 7))
    (captured,) = alone.records(Kind.FRAGMENT_CAPTURED)
    fragment = alone.of(msg.Fragment)[-1]
    assert fragment.origin == captured.seq and captured in fragment.records
    assert captured.cause == (0, pull.origin) and captured.clock[0] >= pull.clock[0]
    assert (captured.round, captured.step, captured.base_version, captured.digest) == (2, 2, 0, 99)


@pytest.mark.parametrize("why", ["no_steps", "base_differs", "update_unfolded"])
def test_it_is_refused_with_the_reason(why: str) -> None:
    alone = Alone().healed(steps=0 if why == "no_steps" else 2)
    if why == "update_unfolded":
        alone.hears(alone.update(1, t=2))
    alone.hears(alone.pull(2, base=1 if why == "base_differs" else 0))
    (refused,) = alone.of(msg.Refused)
    assert (refused.round, refused.fragment, refused.reason) == (2, 0, why)
    (recorded,) = alone.records(Kind.PULL_REFUSED)
    assert (recorded.reason, recorded.seq) == (why, refused.origin) and recorded in refused.records
    assert not alone.did(Capture) and alone.sent[-1][0] == BULK


def test_the_fragment_after_a_fold_has_no_steps() -> None:
    alone = Alone().healed()
    alone.hears(alone.update(1, t=2))
    alone.step()
    alone.hears(alone.pull(4, base=1))
    assert alone.of(msg.Refused)[-1].reason == "no_steps", "the host copy's counters were reset with it"


def test_an_unfolded_update_of_another_fragment_is_no_reason() -> None:
    alone = Alone(period=2, fragments=2).healed()
    alone.hears(alone.update(1, p=1, t=1))
    alone.hears(alone.pull(2, p=0))
    assert len(alone.did(Capture)) == 1


def test_a_pull_of_another_incarnation_or_connection_is_not_answered() -> None:
    alone = Alone().healed()
    alone.hears(alone.pull(2, incarnation=5))
    alone.hears(alone.pull(2), connection=3)
    assert not alone.did(Capture) and not alone.of(msg.Refused)


def test_an_encoded_copy_without_a_syncer_is_let_go() -> None:
    alone = Alone().healed()
    alone.hears(alone.pull(2))
    alone.give(ev.Disconnected(1))
    alone.give(ev.Captured(2, 0, 99, 400, 7))
    assert not alone.of(msg.Fragment) and not alone.state.captures, "nothing would ever decide it"
    assert alone.did(Release)[-1].handle == 7
    assert [(f.step, f.taken) for f in alone.did(ForgetCapture)] == [(2, False)]


def test_an_encoded_copy_goes_out_in_the_incarnation_of_then() -> None:
    alone = Alone().healed()
    alone.hears(alone.pull(2))
    alone.give(ev.Disconnected(1))
    alone.give(ev.Connected(2))
    alone.hears(alone.welcome(2, rejoin=True), connection=2)
    alone.give(ev.Captured(2, 0, 99, 400, 7))
    assert alone.of(msg.Fragment)[-1].incarnation == 2


def test_a_copy_that_nobody_asked_for_is_let_go() -> None:
    alone = Alone().healed()
    alone.give(ev.Captured(2, 0, 99, 400, 7))
    assert not alone.of(msg.Fragment) and alone.did(Release)[-1].handle == 7
    assert alone.now < SECOND
