"""Control of real runs from the command line, with a run that only remembers what it is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_live_picture import learner, status
from workbench.cli.main import main
from workbench.engine import launch
from workbench.protocol.settings import LIVE_KEYS

STATUS = status(2, merges=7, rounds=20)
STATUS["learners"][1] = learner(1, state="waiting", number=3, how="SIGKILL", connected=False, counts=False)


class RememberingRun:
    """Stands for a run that goes on."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.path = Path("run")

    def status(self) -> dict[str, Any]:
        return STATUS

    def __getattr__(self, name: str) -> Any:
        def act(*arguments: Any, **flags: Any) -> int:
            self.asked.append((name, *arguments, flags) if flags else (name, *arguments))
            return 2

        return act

    def set(self, values: dict[str, Any], who: str) -> int:
        self.asked.append(("set", values, who))
        return 4

    def stop(self) -> None:
        self.asked.append(("stop",))

    def outcome(self) -> tuple[int, str]:
        return 0, ""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> RememberingRun:
    made = RememberingRun()
    monkeypatch.setattr(launch, "attach", lambda path: made)
    return made


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["kill", "L1"], ("kill", 1)),
        (["kill", "2", "--down", "0"], ("kill", 2, {"down_s": 0.0})),
        (["kill", "syncer", "--down", "1.5"], ("kill", "syncer", {"down_s": 1.5})),
        (["exit", "2", "--down", "1"], ("exit", 2, {"down_s": 1.0})),
        (["stall", "0", "--for", "2"], ("stall", 0, {"for_s": 2.0})),
        (["slow", "0", "--factor", "4", "--for", "2"], ("slow", 0, {"factor": 4.0, "for_s": 2.0})),
        (["cut", "L3"], ("cut", 3)),
        (["cut", "3", "--direction", "up", "--for", "9"], ("cut", 3, {"direction": "up", "for_s": 9.0})),
        (["lose", "3", "--count", "2", "--direction", "down"], ("lose", 3, {"count": 2, "direction": "down"})),
        (["delay", "1", "--delay", "0.1", "--jitter", "0.02"], ("delay", 1, {"delay_s": 0.1, "jitter_s": 0.02})),
        (["loss", "1", "--share", "0.5"], ("loss", 1, {"share": 0.5})),
        (["bandwidth", "1", "--bytes-per-s", "1e4"], ("bandwidth", 1, {"bytes_per_s": 1e4})),
        (["poison", "2"], ("poison", 2)),
        (["poison", "2", "--kind", "scale", "--factor=-2"], ("poison", 2, {"factor": -2.0, "kind": "scale"})),
        (["poison", "2", "--persistent", "--count", "3"], ("poison", 2, {"count": 3, "persistent": True})),
        (["heal", "3"], ("heal", 3)),
        (["revive", "L3"], ("revive", 3)),
        (["set", "grace_gamma=0.5", "merge=mean"], ("set", {"grace_gamma": 0.5, "merge": "mean"}, "cli")),
        (["set", "quorum=2", "--who", "night shift"], ("set", {"quorum": 2}, "night shift")),
        (["stop"], ("stop",)),
    ],
)
def test_actions_reach_the_run(
    run: RememberingRun, words: list[str], asked: tuple[Any, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["control", "run", *words, "--json"]) == 0
    assert run.asked == [asked]
    answer = json.loads(capsys.readouterr().out)
    assert answer["done"] == words[0] and answer.get("ended") == (2 if words[0] == "heal" else None)


def test_a_poison_is_answered_with_its_kind(run: RememberingRun, capsys: pytest.CaptureFixture[str]) -> None:
    for words, kind in (([], "nan"), (["--kind", "flip"], "flip")):
        assert main(["control", "run", "poison", "1", *words]) == 0
        assert capsys.readouterr().out == f"done poison, target 1, kind {kind}\n"


def test_what_is_not_live_is_not_offered(run: RememberingRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["control", "run", "set", "foo=1"]) == 2
    offered = set(capsys.readouterr().err.partition("live settings: ")[2].strip().split(", "))
    assert offered == set(LIVE_KEYS) and not offered & {"learners", "period", "seed", "preset", "eval_every"}


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["kill"], "give one target"),
        (["kill", "1", "2"], "give one target"),
        (["stall", "L-1x"], "give one target"),
        (["set"], "grace_gamma=0.5"),
        (["set", "nonsense"], "KEY=VALUE"),
        (["status", "2"], "takes no '2'"),
        (["explode"], "explode"),
        (["set", "foo=1"], "unknown key 'foo'; live settings: quorum, eligibility, grace"),
        (["set", "learners=3"], "learners cannot change while a run goes on; live settings: quorum"),
        (["kill", "1", "--factor", "2"], "kill takes no --factor; allowed: --down"),
        (["delay", "1", "--share", "2"], "delay takes no --share; allowed: --delay, --jitter, --for"),
        (["loss", "1", "--bytes-per-s", "2"], "loss takes no --bytes-per-s"),
        (["heal", "1", "--for", "2"], "heal takes no --for; allowed: no flags of its own"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    run: RememberingRun, words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["control", "run", *words]) == 2
    error = capsys.readouterr().err
    assert part in error and error.count("\n") == 1
    assert run.asked == []


def test_status_shows_every_learner(run: RememberingRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["control", "run", "status"]) == 0
    text = capsys.readouterr().out
    for part in (
        "merges  7 of 20",
        "L0       ▸ training",
        "2.346",
        "L1       ✕ down",
        "1 of 2 there",
        "round 40",
        "SIGKILL",
    ):
        assert part in text
    assert main(["control", "run", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == STATUS
