"""A learner in the foreground: what it says, when it gives up, and with which code it ends."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.engine.finding import Limit
from workbench.engine.staying import AWAY_FOR_S, SAY_EVERY_S, Staying
from workbench.protocol import events as ev


class Driver:
    """Takes part for as long as the script says."""

    def __init__(self, *turns: Any) -> None:
        state = SimpleNamespace(learner=1, welcomed=False, incarnation=0, n=7)
        self.machine = SimpleNamespace(state=state)
        self.wire = SimpleNamespace(refusal="", wake=lambda: None, close=lambda linger_ms: self.given.append("closed"))
        self.left = ""
        self.given: list[Any] = []
        self.turns = list(turns)

    def begin(self) -> None:
        self.given.append("began")

    def turn(self) -> None:
        if self.turns:
            self.turns.pop(0)(self)

    def give(self, event: Any) -> None:
        self.given.append(event)
        self.left = event.reason


def welcome(driver: Driver) -> None:
    driver.machine.state.welcomed = True
    driver.machine.state.incarnation += 1


def end(reason: str) -> Any:
    return lambda driver: setattr(driver, "left", reason)


def staying(driver: Driver, patience_s: float = 30.0) -> Staying:
    return Staying(driver, "tcp://far:5", Limit("connect_limit_s", 10.0), patience_s)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _signals() -> Any:
    """Handlers as they were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("reason", "code", "line"),
    [
        ("rounds", 0, "the run is over (rounds), after own step 7"),
        ("stopped", 0, "the run is over (stopped), after own step 7"),
        ("superseded", 3, "another process, started later, is L1 now; this one has left the run"),
    ],
)
def test_it_ends_as_it_is_told(reason: str, code: int, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    driver = Driver(welcome, end(reason))
    assert staying(driver).run() == (code, line)
    assert driver.given == ["began", "closed"]
    assert "takes part: incarnation 1, after own step 7" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_it_leave_in_order(number: signal.Signals) -> None:
    driver = Driver(welcome, lambda _: signal.raise_signal(number))
    assert staying(driver).run() == (128 + number, "left after own step 7; the run goes on without it")
    assert ev.LeaveAsked("interrupted") in driver.given


def test_before_any_welcome_it_gives_up_at_the_connect_limit() -> None:
    driver = Driver()
    life = staying(driver)
    driver.wire.refusal = "the fragments have other sizes here"
    assert life._look(life.since + 9.9) == ""
    line = life._look(life.since + 10.0)
    assert "within connect_limit_s = 10 (the fragments have other sizes here)" in line


def test_without_its_syncer_it_trains_on_for_as_long_as_its_patience(capsys: pytest.CaptureFixture[str]) -> None:
    driver = Driver()
    life = staying(driver)
    welcome(driver)
    assert life._look(100.0) == ""
    driver.machine.state.welcomed = False
    assert life._look(101.0) == "" and life._look(101.0 + AWAY_FOR_S / 2) == ""
    assert "no syncer" not in capsys.readouterr().err, "a syncer that is back at once is not worth a line"
    assert life._look(101.0 + AWAY_FOR_S) == ""
    assert "has had no syncer at tcp://far:5 for 2 s: it trains on, at own step 7" in capsys.readouterr().err
    assert life._look(101.0 + AWAY_FOR_S + SAY_EVERY_S / 2) == ""
    assert capsys.readouterr().err == "", "one line in a while"
    assert "the limit is --patience 30" in life._look(131.0)


def test_a_syncer_that_is_back_starts_the_patience_anew(capsys: pytest.CaptureFixture[str]) -> None:
    driver = Driver()
    life = staying(driver)
    welcome(driver)
    life._look(100.0)
    driver.machine.state.welcomed = False
    assert life._look(101.0) == "" and life._look(120.0) == ""
    welcome(driver)
    assert life._look(121.0) == ""
    assert "takes part again: incarnation 2" in capsys.readouterr().err
    driver.machine.state.welcomed = False
    assert life._look(122.0) == "" and life._look(151.9) == "" and life._look(152.0) != ""


def test_an_error_of_the_training_thread_closes_the_wire() -> None:
    def fail(_: Driver) -> None:
        raise ValueError("a step went wrong")

    driver = Driver(fail)
    with pytest.raises(ValueError, match="went wrong"):
        staying(driver).run()
    assert driver.given[-1] == "closed"
