from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from workbench.cli.main import main


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Stand in for many schedules: odd seeds break a rule.  One schedule is told by the real explorer."""
    from workbench.simulate import explorer

    seen: list[dict[str, Any]] = []

    def explore(seeds: int, first_seed: int, processes: int, progress: Callable[[int, int], None]) -> Any:
        seen.append({"seeds": seeds, "first_seed": first_seed, "processes": processes})
        progress(seeds, seeds)
        bad = [seed for seed in range(first_seed, first_seed + seeds) if seed % 2]
        failures = [explorer.Failure(s, "rule 4", f"workbench explore --seed {s}") for s in bad]
        return explorer.ExploreReport(seeds, 100 * seeds, 10 * seeds, 40, 3, failures, {}, 0.5)

    monkeypatch.setattr(explorer, "explore", explore)
    return seen


def test_sound_schedules_are_counted(asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--seeds", "1", "--first", "2", "--processes", "1"]) == 0
    assert asked == [{"seeds": 1, "first_seed": 2, "processes": 1}]
    assert "100" in capsys.readouterr().out


def test_a_broken_rule_is_code_1_with_the_command_that_repeats_it(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", "--seeds", "4"]) == 1
    out = capsys.readouterr().out
    assert "seed 3: rule 4" in out
    assert "workbench explore --seed 3" in out


def test_json_holds_the_failures(asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--seeds", "2", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["failures"] == [{"seed": 1, "message": "rule 4", "command": "workbench explore --seed 1"}]
    assert (found["schedules"], found["events"], found["merges"]) == (2, 200, 20)


def test_one_seed_tells_its_story(asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--seed", "5"]) == 0
    out = capsys.readouterr().out
    assert "all invariants held: 40 merges" in out
    assert "fault_injected" in out and "in the order of the journal" in out
    assert asked == []


def test_a_printed_schedule_runs_again(asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    from workbench.simulate.schedules import draw

    assert main(["explore", "--schedule", draw(5).text()]) == 0
    told = capsys.readouterr().out
    assert main(["explore", "--seed", "5"]) == 0
    assert capsys.readouterr().out == told
    assert main(["explore", "--schedule", "{"]) == 2


@pytest.mark.parametrize("words", [["--seeds", "0"], ["--first", "-1"], ["--processes", "0"], ["--seeds", "x"]])
def test_impossible_numbers_are_refused(asked: list[dict[str, Any]], words: list[str]) -> None:
    assert main(["explore", *words]) == 2
    assert asked == []
