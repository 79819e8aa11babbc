from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.analysis.from_records import tables
from workbench.analysis.reports import REPORTS
from workbench.cli.main import main
from workbench.config import RunConfig

Put = Callable[..., None]
VIRTUAL = ("--clock", "virtual")
DEMO = Path(__file__).parent.parent.parent / "data" / "demo-faults.toml"


@pytest.fixture
def calls(stand_in: Put) -> list[dict[str, Any]]:
    """Record what the verb asks for."""
    seen: list[dict[str, Any]] = []

    def train(config: RunConfig, out: Path, faults: Any, progress: Any) -> SimpleNamespace:
        seen.append({"config": config, "out": out, "faults": faults})
        progress(SimpleNamespace(merges=config.rounds, rounds=config.rounds, time_s=1.0, loss=2.0, waits_for=""))
        return SimpleNamespace(path=out, digest=0xAB, virtual_s=1.0, wall_s=1.0)

    def summary(tape: Any) -> dict[str, Any]:
        config = seen[-1]["config"]
        fates = dict.fromkeys(("overwritten", "not_merged", "blended", "lost", "rolled_back", "local"), 1.0)
        tokens = {f"tokens_{fate}": value for fate, value in fates.items()} | {"tokens_merged": 94.0}
        processed = 100.0 if config.seed != 13 else 101.0
        return (
            {"merges": config.rounds, "val_loss_last": float("nan"), "goodput": 0.97}
            | tokens
            | {"tokens_processed": processed}
        )

    empty = REPORTS["overview"](tables([]))
    stand_in("workbench.simulate.training_run", train_virtual=train)
    stand_in("workbench.analysis.reports", REPORTS={"overview": lambda tape: empty})
    stand_in("workbench.analysis.summary", summary=summary)
    stand_in("workbench.tape", open_tape=lambda path: path)
    return seen


def test_a_ledger_that_does_not_balance_is_code_1(calls: list[dict[str, Any]], tmp_path: Path) -> None:
    assert main(["train", *VIRTUAL, "--seed", "13", "--out", str(tmp_path / "run")]) == 1


def test_settings_without_effect_are_told_beside_the_result(
    calls: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *VIRTUAL, "--set", "grace_s=1", "--out", str(tmp_path / "run"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert "workbench: grace_s has no effect with grace = adaptive" in err.splitlines()
    assert json.loads(out)["merges"] == RunConfig().rounds


def test_flags_reach_the_configuration(calls: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("learners = 3\nquorum = 2\n", encoding="utf-8")
    words = [
        "train",
        *VIRTUAL,
        "--preset",
        "tiny-4",
        "--config",
        str(file),
        "--set",
        "quorum=3",
        "--set",
        "model.width=64",
    ]
    assert main([*words, "--seed", "7", "--data", str(file), "--out", str(tmp_path / "run")]) == 0
    config = calls[0]["config"]
    assert (config.preset, config.learners, config.quorum, config.seed) == ("tiny-4", 3, 3, 7)
    assert (config.model.width, config.data.source, config.data.path) == (64, "path", str(file.resolve()))
    assert calls[0]["out"] == tmp_path / "run"
    assert calls[0]["faults"].faults == ()


def test_json_is_all_that_stdout_holds(
    calls: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *VIRTUAL, "--set", "rounds=12", "--json", "--out", str(tmp_path / "run")]) == 0
    captured = capsys.readouterr()
    summary = json.loads(captured.out)
    assert (summary["merges"], summary["val_loss_last"], summary["digest"]) == (12, None, f"{0xAB:016x}")
    assert captured.err == "merges 12/12 1.0 s virtual, loss 2.000\n"


def test_the_text_says_what_to_type_next(
    calls: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *VIRTUAL, "--out", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    assert "digest 00000000000000ab" in out
    assert "goodput" in out
    assert f"workbench inspect {tmp_path / 'run'}" in out


def test_ctrl_c_says_where_the_tape_is(stand_in: Put, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def train(config: RunConfig, out: Path, faults: Any, progress: Any) -> None:
        if config.seed:
            (out / "tape").mkdir(parents=True)
        raise KeyboardInterrupt

    stand_in("workbench.simulate.training_run", train_virtual=train)
    for seed, said in (("0", "workbench: interrupted\n"), ("1", f"workbench inspect {tmp_path / 'run'}\n")):
        assert main(["train", *VIRTUAL, "--seed", seed, "--out", str(tmp_path / "run")]) == 130
        assert capsys.readouterr().err.endswith(said)


def test_faults_come_from_a_file_and_from_chance(
    calls: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", *VIRTUAL, "--faults", str(DEMO), "--chaos", "mtbi=5s,kinds=stall", "--preset", "tiny-4"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    faults = calls[0]["faults"].faults
    assert [(f.learner, f.at_merge) for f in faults if f.kind == "kill"] == [(1, 150), (3, 400)]
    assert max(f.at_ns for f in faults if f.kind == "stall") < 90 * 10**9
    assert "fleet MTBF 1.25 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--data", "/no/such/text"], "does not exist"),
        (["--chaos", "nonsense"], "nonsense"),
        (["--faults", "/no/such/file"], "/no/such/file"),
    ],
)
def test_a_request_that_cannot_work_trains_nothing(
    calls: list[dict[str, Any]], words: list[str], part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *VIRTUAL, *words, "--out", str(tmp_path / "run")]) == 2
    assert part in capsys.readouterr().err
    assert calls == []
    assert not (tmp_path / "run").exists()


def test_a_folder_in_use_is_refused_with_a_free_name(
    calls: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    assert main(["train", *VIRTUAL, "--out", str(tmp_path / "run")]) == 0
    (tmp_path / "run" / "journal").touch()
    assert main(["train", *VIRTUAL, "--out", str(tmp_path / "run")]) == 2
    assert f"--out {tmp_path / 'run-2'}" in capsys.readouterr().err


def test_runs_without_a_folder_are_numbered(
    calls: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs/tiny-4-s3-1").mkdir(parents=True)
    assert main(["train", *VIRTUAL, "--preset", "tiny-4", "--seed", "3"]) == 0
    assert calls[0]["out"] == Path("runs/tiny-4-s3-2")


def test_a_wrong_configuration_is_refused_before_anything_is_loaded(calls: list[dict[str, Any]]) -> None:
    before = set(sys.modules)
    assert main(["train", *VIRTUAL, "--set", "quorum=9"]) == 2
    assert {name for name in set(sys.modules) - before if name.startswith(("jax", "workbench.simulate"))} == set()
