from __future__ import annotations

import threading

from tests.engine.real_runs import until
from workbench.pages.fault_form import KINDS as FORM_KINDS
from workbench.pages.storm import Stormer
from workbench.protocol.live_storm import KINDS, RATE_MAX, Storm, Strike


def test_every_kind_of_a_storm_can_be_asked_for_by_hand() -> None:
    assert set(KINDS) <= set(FORM_KINDS)


def test_a_storm_ends_with_its_rate_and_with_its_run() -> None:
    struck: list[Strike] = []
    going = threading.Event()
    going.set()

    def strike(strike: Strike) -> bool:
        struck.append(strike)
        return len(struck) > 1

    stormer = Stormer(Storm(2), strike, going.is_set)
    stormer.storm.advance(0.0)
    stormer.turn(1e9, ("kill", "no such kind"))
    assert stormer.storm.rate == RATE_MAX and stormer.storm.kinds == ("kill",)
    until(lambda: len(struck) >= 2, "it has struck")
    stormer.turn(0.0, ("kill",))
    until(lambda: stormer._thread is None, "it is calm")
    assert (stormer.struck, stormer.missed) == (len(struck) - 1, 1)
    stormer.turn(30.0, ())
    assert stormer.storm.rate == 0.0
    stormer.turn(30.0, ("stall",))
    going.clear()
    until(lambda: stormer._thread is None and stormer.storm.rate == 0.0, "it ends with the run")
