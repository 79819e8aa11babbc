from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.comparing.test_comparison import imported, run
from tests.analysis.runs import CONFIG
from tests.tape.foreign.dialects import events
from workbench.cli.main import main

Tell = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("runs")
    changed = CONFIG.set(quorum=2)
    return [
        str(run(folder / "a", 2.0)),
        str(run(folder / "b", 2.5, changed, digest=5)),
        str(
            run(
                folder / "c",
                2.7,
                changed.set(seed=9),
                digest=6,
                parent={"run_id": "a", "event": 7, "class": "schedule"},
            )
        ),
    ]


def test_json_has_the_first_divergence(runs: list[str], told: Tell) -> None:
    found = told("compare", *runs[:2], "--reach", "3.0")
    assert found["first_divergence"]["event"] == 7 and found["first_divergence"]["column"] == "digest"
    assert found["settings"] == {"quorum": [1, 2]} and found["reached"][0]["merges"] == [1.5, pytest.approx(5 / 3)]
    assert found["curves"]["tokens_processed"] == [0, 10, 20]
    assert told("compare", runs[0], runs[0])["first_divergence"] is None


def test_the_page_tells_it_on_one_screen(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *runs, "--axis", "merges", "--reach", "2.6"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "settings that differ A B C quorum 1 2 2 seed 0 0 9" in said
    assert "first divergence of B from A (merge by merge): at 2.500 s, after 1 merge: the syncer merged (round" in said
    assert "what-if (schedule) of A from event 7" in said and "times count from the start of rounds" in said
    assert "validation loss, last [nats/byte] 2.0000 2.5000 (+0.5000) 2.7000 (+0.7000)" in said and "(same)" in said
    assert "mean over seeds, 95% t-interval" in said and "BC (n = 2)" in said and "not reached" in said
    assert "2 2.0000 2.5000 (+0.5000) 2.7000 (+0.7000)" in said


def test_an_import_says_what_is_unknown(
    runs: list[str], tmp_path: Path, told: Tell, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = str(imported(tmp_path / "theirs", events()))
    assert main(["compare", runs[0], theirs]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "settings of B are unknown: it was imported" in said and "settings that differ" not in said
    assert "no first divergence of B from A: the second run is an import" in said
    assert told("compare", runs[0], theirs)["first_divergence"] is None


def test_wrong_requests(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for words, expected in (
        ([runs[0]], "one run has nothing to be compared with"),
        ([*runs, *runs, *runs], "9 runs to compare; allowed: 2 to 6"),
        ([runs[0], "no/such"], "no/such holds no tape"),
        ([*runs, "--reach", "low"], "--reach low holds no numbers; type --reach 2.0,1.8"),
        ([*runs, "--axis", "steps"], "invalid choice: 'steps'"),
    ):
        assert main(["compare", *words]) == 2
        assert expected in capsys.readouterr().err
