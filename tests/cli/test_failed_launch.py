"""A run that ended before it began: its folder says why, wherever one looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.real_runs import GUARD_S, tiny
from workbench.cli.main import main
from workbench.cli.pages import header
from workbench.engine.launch import RunEnded, launch
from workbench.engine.layout import OUTCOME_FILE, read_outcome


def test_inspect_tells_why_there_is_no_tape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tiny(**{"data.source": "path", "data.path": str(tmp_path / "nowhere")})  # type: ignore[arg-type]
    run = launch(config, tmp_path / "run")
    with pytest.raises(RunEnded) as ended:
        run.wait(timeout_s=GUARD_S)
    assert ended.value.code == 2 and "nowhere" in str(ended.value)
    for words in ([], ["ledger"], ["--json"]):
        capsys.readouterr()
        assert main(["inspect", str(run.path), *words]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1
        assert "holds no tape: the run ended before it began, with exit code 2: " in err and "nowhere" in err


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"code": "x", "line": 1}', "\x00"])
def test_an_outcome_that_is_none_is_none(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / OUTCOME_FILE).write_text(text)
    assert read_outcome(tmp_path) is None
    assert main(["inspect", str(tmp_path)]) == 2
    assert "the run ended before" not in capsys.readouterr().err


@pytest.mark.parametrize(("reason", "said"), [("stopped", "stopped after"), ("SIGTERM", "stopped (SIGTERM) after")])
def test_the_end_of_a_run_is_said_once(reason: str, said: str) -> None:
    run = {
        "state": "stopped", "state_reason": reason, "merges": 3, "merges_wanted": 9, "duration_s": 1.0, "clock": "real"
    }  # fmt: skip
    assert header.state(run)[0].startswith(said)
