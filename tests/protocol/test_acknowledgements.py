"""PROTOCOL section 7: a learner hears what became of its contributions, and how long it keeps their copies."""

from __future__ import annotations

from tests.protocol.driving import Alone
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol.actions import Capture, Fold, ForgetCapture, Release
from workbench.protocol.records import Kind


def test_an_update_acknowledges_the_contribution_that_it_names_before_it_is_folded() -> None:
    alone = Alone().healed()
    n = alone.contribute(2).step
    alone.hears(alone.update(1, t=2, last_merged=1, last_merged_step=n))
    alone.step()
    kinds = [r.kind for r in alone.state.outbox.unacked][-3:]
    assert kinds == [Kind.STEP_ENDED, Kind.CONTRIBUTION_ACKNOWLEDGED, Kind.UPDATE_FOLDED]
    (ack,) = alone.records(Kind.CONTRIBUTION_ACKNOWLEDGED)
    assert (ack.round, ack.step, ack.value, ack.version) == (2, n, 1.0, 1)
    assert [(f.step, f.taken) for f in alone.did(ForgetCapture)] == [(n, True)]
    assert not alone.state.captures


def test_the_record_of_an_acknowledgement_has_heard_its_cause() -> None:
    alone = Alone().healed()
    n = alone.contribute(2).step
    update = alone.update(1, t=2, last_merged=1, last_merged_step=n)
    update.origin = update.clock[0]
    alone.hears(update)
    assert alone.state.clock[0] < update.origin, "an update that lies unfolded is not heard"
    alone.step()
    for record in alone.records(Kind.CONTRIBUTION_ACKNOWLEDGED, Kind.UPDATE_FOLDED)[-2:]:
        assert record.cause == (0, update.origin) and record.clock[0] >= update.origin


def test_a_contribution_that_can_be_taken_no_more_is_not_taken() -> None:
    alone = Alone().healed()
    n = alone.contribute(2).step
    alone.hears(alone.update(1, t=2))
    alone.step()
    (ack,) = alone.records(Kind.CONTRIBUTION_ACKNOWLEDGED)
    assert (ack.step, ack.value) == (n, 0.0)
    assert [(f.step, f.taken) for f in alone.did(ForgetCapture)] == [(n, False)]


def test_a_captured_copy_is_kept_across_folds_while_it_may_be_merged() -> None:
    alone = Alone(anchor="base", anchors_kept=2).healed()
    n = alone.contribute(2).step
    for version in (1, 2):
        alone.hears(alone.update(version, t=2 * version))
        alone.step()
        assert [c.step for c in alone.state.captures[0]] == [n]
    alone.hears(alone.update(3, t=6))
    alone.step()
    assert not alone.state.captures and alone.records(Kind.CONTRIBUTION_ACKNOWLEDGED)[-1].value == 0.0


def test_a_later_contribution_that_is_merged_decides_the_earlier() -> None:
    alone = Alone(anchor="base", anchors_kept=5).healed()
    first = alone.contribute(2).step
    alone.step()
    second = alone.contribute(4).step
    alone.hears(alone.update(1, t=4, last_merged=1, last_merged_step=second))
    alone.step()
    assert [(r.step, r.value) for r in alone.records(Kind.CONTRIBUTION_ACKNOWLEDGED)] == [(first, 0.0), (second, 1.0)]


def test_an_acknowledgement_comes_with_whatever_update_arrives() -> None:
    """The UPDATE of the round was lost; the next one still names the contribution."""
    alone = Alone(fold="delay_corrected").healed()
    n = alone.contribute(2).step
    alone.hears(alone.update(2, t=4, last_merged=1, last_merged_step=n))
    alone.step()
    assert alone.records(Kind.CONTRIBUTION_ACKNOWLEDGED)[0].value == 1.0
    assert alone.did(Fold)[-1].reference == n


def test_a_copy_that_two_captures_share_is_kept_while_one_needs_it() -> None:
    alone = Alone().healed()
    alone.contribute(2)
    alone.hears(alone.pull(2))
    assert [c.step for c in alone.did(Capture)] == [2, 2]
    alone.give(ev.Disconnected(1))
    alone.give(ev.Captured(2, 0, 9, 400, 60))
    assert not alone.did(ForgetCapture) and len(alone.state.captures[0]) == 1


def test_an_update_of_another_connection_or_incarnation_is_nothing_and_let_go() -> None:
    alone = Alone().healed()
    alone.hears(alone.update(1, t=2, handle=500), connection=9)
    alone.hears(alone.update(1, t=2, handle=501, incarnation=7))
    assert not alone.state.inbox and [a.handle for a in alone.did(Release)][-2:] == [500, 501]
    assert isinstance(alone.update(1), msg.Update)
