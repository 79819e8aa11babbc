from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tape.foreign.dialects import EVENTS_MAP, RANKS_MAP, events, ranks, write
from workbench.cli.main import main
from workbench.tape import TapeError, open_tape
from workbench.tape.foreign.mapping import KEYS

Tell = Callable[..., dict[str, Any]]


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    (tmp_path / "map.toml").write_text(EVENTS_MAP)
    log = write(tmp_path / "log.jsonl", events())
    return ["import", str(log), "--map", str(tmp_path / "map.toml"), "--out", str(tmp_path / "run")]


def test_a_log_is_imported_inspected_and_exported(
    tmp_path: Path, words: list[str], told: Tell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "3 replicas, 18 steps, 3 syncs from 23 lines, 2 of neither" in said and "cannot be told: rounds" in said
    run = str(tmp_path / "run")
    assert main(["inspect", run]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "imported from the logs of another trainer, clocks derived" in page
    assert "rounds, breakdown, merge_availability: a log of syncs has no openings" in page
    assert "counted over 6.7 s, from the first report of the log to its last" in page
    assert "4 participants of syncs that they do not report themselves, placed by time stamps" in page
    assert "L2 c 5 500 2" in page and "stopped (log ends): " not in page and "of 3 merges" in page
    found = told("inspect", run)
    assert found["clocks"] == "derived" and found["learners"][2]["lives"] == 2 and "rounds" in found["untold"]
    assert told("inspect", run, "participation")["merges"] == 3
    assert told("inspect", run, "goodput")["goodput"] == pytest.approx(9.0 / (6.7 + 6.7 + 6.6), abs=0.1)
    assert told("inspect", run, "ledger")["balanced"]
    out = tmp_path / "t.json"
    assert main(["export", run, "--format", "perfetto", "--out", str(out)]) == 0
    trace = json.loads(out.read_text())["traceEvents"]
    assert sum(e["ph"] == "X" and e["name"].startswith("merge") for e in trace) == 3
    capsys.readouterr()
    for table in ("rounds", "validation", "staleness"):
        assert main(["inspect", run, table]) == 2
        assert f"cannot tell {table}: " in capsys.readouterr().err
    for verb in (["replay", run], ["what-if", run, "--set", "merge=mean"]):
        assert main(verb) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"workbench: {run} is an import of another trainer's logs: its tape holds no arithmetic")
        assert said.count("\n") == 1
    tape = open_tape(run)
    with pytest.raises(TapeError, match="this tape cannot tell critical_path: a log of syncs has no openings"):
        tape.wb.critical_path(1)


def test_the_second_dialect_tells_what_it_can(tmp_path: Path, told: Tell, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "map.toml").write_text(RANKS_MAP)
    logs = [str(write(tmp_path / f"{name}.log", lines)) for name, lines in ranks().items()]
    found = told("import", *logs, "--map", str(tmp_path / "map.toml"), "--out", str(tmp_path / "run"))
    assert found["replicas"] == ["rank0", "rank1", "rank2"] and found["untold"]["goodput"].startswith(
        "no line says how"
    )
    assert main(["inspect", str(tmp_path / "run")]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "goodput cannot be told" in page and "participation 100 %" in page
    assert main(["inspect", str(tmp_path / "run"), "goodput"]) == 2
    assert "duration = FIELD" in capsys.readouterr().err


def test_wrong_requests(tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(log.read_text() + '{"t": 9, "who": "a", "event": "step", "n": "x"}\n')
    assert main(words) == 2
    assert "log.jsonl, line 24: n is 'x'; expected the number of a step" in capsys.readouterr().err
    write(log, events())
    assert main(words) == 0 and main(words) == 2
    assert "already holds a run" in capsys.readouterr().err
    assert main([*words[:2], "--map", str(tmp_path / "none.toml"), "--out", str(tmp_path / "new")]) == 2
    assert "the map of the log" in capsys.readouterr().err and not (tmp_path / "new").exists()


def test_help_names_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["import", "--help"])
    shown = capsys.readouterr().out
    assert all(line in shown for line in KEYS.splitlines())
