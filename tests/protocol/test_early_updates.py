"""An UPDATE on the bulk channel may overtake the WELCOME of its incarnation on the control channel."""

from __future__ import annotations

from tests.protocol.alone import Alone
from workbench.protocol import events as ev
from workbench.protocol.actions import Fold, Release


def joining() -> Alone:
    alone = Alone()
    alone._keep(alone.machine.start(0))
    alone.give(ev.Connected(1))
    return alone


def test_it_waits_for_its_welcome_and_is_folded_before_the_first_step() -> None:
    alone = joining()
    for p in range(alone.config.fragments):
        alone.hears(alone.update(0, p, incarnation=1))
    assert not alone.did(Fold) and not alone.did(Release)
    alone.hears(alone.welcome())
    alone.give(ev.Adopted(5))
    assert [fold.fragment for fold in alone.did(Fold)] == list(range(alone.config.fragments))
    assert alone.state.base == [0] * alone.config.fragments and not alone.state.early


def test_the_global_step_is_that_of_the_newest_round_all_the_same() -> None:
    """Without it the joiner would count from 0, and be ready for no round until it had caught up."""
    alone = joining()
    for p in range(alone.config.fragments):
        alone.hears(alone.update(4, p, incarnation=1, round=24 - p))
    alone.hears(alone.welcome(versions=[4] * alone.config.fragments))
    alone.give(ev.Adopted(5))
    assert alone.state.g == 24


def test_the_newest_of_a_fragment_waits_and_the_other_is_let_go() -> None:
    alone = joining()
    alone.hears(alone.update(0, incarnation=1))
    alone.hears(alone.update(1, incarnation=1))
    assert [release.handle for release in alone.did(Release)] == [100]
    alone.hears(alone.welcome(versions=[1] * alone.config.fragments))
    alone.give(ev.Adopted(5))
    assert alone.state.base[0] == 1


def test_what_waited_for_another_life_is_let_go() -> None:
    alone = joining()
    alone.hears(alone.update(0, incarnation=3))
    alone.hears(alone.welcome(incarnation=4))
    alone.give(ev.Adopted(5))
    assert not alone.did(Fold) and [release.handle for release in alone.did(Release)] == [100]


def test_another_connection_lets_it_go() -> None:
    alone = joining()
    alone.hears(alone.update(0, incarnation=1))
    alone.give(ev.Connected(2))
    assert [release.handle for release in alone.did(Release)] == [100] and not alone.state.early
