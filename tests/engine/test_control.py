"""What is asked of a run is refused where it is entered if no message can carry it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.cli.main import main
from workbench.config import ConfigError
from workbench.engine import control
from workbench.engine.launch import Run, attach

HUGE = 99_999_999_999_999_999_999
ADDRESS = control.ControlAddress("nowhere", "token", 1, 1, "runtime")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """A run that goes on, as far as anybody can see without asking it."""
    monkeypatch.setattr(control, "address_of", lambda path: ADDRESS)
    (tmp_path / control.CONTROL_FILE).touch()
    return attach(tmp_path)


@pytest.mark.parametrize(
    ("act", "complaint"),
    [
        (lambda run: run.set(quorum=HUGE), f"quorum = {HUGE} is out of range; allowed: 1 to 4096"),
        (lambda run: run.set(lead=HUGE), f"lead = {HUGE} is out of range; allowed: a whole number up to 92"),
        (lambda run: run.set(grace_s=10**400), r"grace_s = 10+… .* is out of range; allowed: 0 to 3600"),
        (lambda run: run.set(quorum=10**5000), "quorum = a whole number of more digits than can be written is out"),
        (lambda run: run.set(merge="x" * 2000), r"merge = 'x+… \(2,002 characters\) is too long; allowed: up to 1000"),
        (lambda run: run.set(quorum=2, who="\udcff"), "who = .* is no text; allowed: what can be written in UTF-8"),
        (lambda run: run.set(grace_s=float("inf")), "grace_s = inf is out of range; allowed: finite numbers"),
        (lambda run: run.kill(HUGE), f"target = {HUGE} is out of range"),
        (lambda run: run.kill(f"L{HUGE}"), f"target = {HUGE} is out of range"),
        (lambda run: run.stall(0, for_s=float("nan")), "for_s = nan is out of range; allowed: finite numbers"),
        (lambda run: run.lose(0, count=HUGE), f"count = {HUGE} is out of range"),
        (lambda run: run.inject("slow", 0, factor={1}), r"factor = \{1\} is of type set; allowed: numbers"),
        (lambda run: run.inject("slow\udcff", 0), "kind = .* is no text"),
        (lambda run: run.heal(HUGE), "target = "),
        (lambda run: run.remove(HUGE), "target = "),
        (lambda run: run.release(HUGE), "target = "),
        (lambda run: run.revive(HUGE), "target = "),
        (lambda run: run.add(who="\udcff"), "who = "),
        (lambda run: run.snapshot(who="\udcff"), "who = "),
    ],
)
def test_what_no_message_can_carry_is_refused_in_a_line(run: Run, act: Callable[[Run], Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=f"^{complaint}") as refused:
        act(run)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "words",
    [
        ["set", f"quorum={HUGE}"], ["set", f"lead={HUGE}"], ["set", "grace_s=1e400"], ["set", "merge=\udcff"],
        ["kill", str(HUGE)], ["kill", "1", "--down", "inf"], ["poison", "1", "--count", str(HUGE)],
        ["poison", "1", "--kind", "scale", "--factor", "nan"], ["add", "--who", "\udcff"], ["heal", f"L{HUGE}"],
        ["release", str(HUGE)], ["remove", "1", "--who", "x" * 2000],
    ],
)  # fmt: skip
def test_the_command_line_refuses_it_with_code_2(
    run: Run, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["control", str(run.path), *words]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "allowed: " in said


def test_numbers_of_numpy_are_sent_as_pythons() -> None:
    sent = control.sendable({"a": np.int64(3), "b": [np.float32(0.5)], "c": {"d": True, "e": None}})
    assert sent == {"a": 3, "b": [0.5], "c": {"d": True, "e": None}}
    assert [type(sent["a"]), type(sent["b"][0]), type(sent["c"]["d"])] == [int, float, bool]
