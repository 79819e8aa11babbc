"""Runs that are still starting, or that ended before anything was recorded: one line, exit code 2, what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from workbench.cli.main import main
from workbench.tape import JournalWriter, RunFolder
from workbench.tape.journal import read_header
from workbench.tape.lock import FileLock

VERBS = pytest.mark.parametrize(
    "words", [["inspect"], ["inspect", "ledger"], ["replay", "--json"], ["what-if", "--out", "OUT"]], ids=" ".join
)
STAGES = pytest.mark.parametrize("stage", ["folder", "empty", "torn", "header"])


def run_at(stage: str, small_run: Path, path: Path) -> RunFolder:
    """The folder of a run of which nothing has happened yet."""
    path.mkdir()
    shutil.copy(small_run / "config.toml", path)
    folder = RunFolder(path)
    if stage == "header":
        JournalWriter(folder.journal, read_header(small_run / "journal")).close()
    elif stage != "folder":
        folder.journal.write_bytes((small_run / "journal").read_bytes()[: 30 * (stage == "torn")])
    return folder


def said(words: list[str], run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    words = [str(tmp_path / "child") if word == "OUT" else word for word in words]
    assert main([words[0], str(run), *words[1:]]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert not (tmp_path / "child").exists()
    return err


@STAGES
@VERBS
def test_a_run_that_is_starting(
    stage: str, words: list[str], small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_at(stage, small_run, tmp_path / "run")
    with FileLock(folder.supervisor_lock, "the run"):
        assert "is starting: nothing is recorded yet; ask again in some seconds" in said(
            words, folder.path, tmp_path, capsys
        )


@pytest.mark.parametrize("stage", ["folder", "empty", "header"])
@VERBS
def test_a_run_that_ended_before_anything_was_recorded(
    stage: str, words: list[str], small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_at(stage, small_run, tmp_path / "run")
    told = said(words, folder.path, tmp_path, capsys)
    assert "its run ended before anything was recorded; train it again (workbench train --config" in told
    if stage == "folder":
        (folder.path / "outcome.json").write_text('{"code": 3, "line": "no room"}')
        assert "ended before it began, with exit code 3: no room" in said(words, folder.path, tmp_path, capsys)
