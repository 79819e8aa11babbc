"""``workbench resume`` and ``workbench snapshot``: what cannot be is one line and exit code 2, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.cli.main import main


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that a request is refused with."""
    assert main(list(words)) == 2
    said = capsys.readouterr()
    assert not said.out and said.err.count("\n") == 1
    return said.err


def test_a_run_that_has_done_all_its_merges_has_nothing_to_go_on_with(
    small_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (small_run / "journal").read_bytes()
    assert "has done all of its 60 merges" in refused(capsys, "resume", str(small_run))
    assert (small_run / "journal").read_bytes() == before


def test_a_snapshot_that_is_not_there_is_named_with_those_that_are(
    small_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "there is no snapshot 7" in refused(capsys, "resume", str(small_run), "--snapshot", "7")
    assert "allowed: the number of a snapshot, from 1" in refused(capsys, "resume", str(small_run), "--snapshot", "0")


def test_what_is_no_run_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("resume", "snapshot"):
        assert str(tmp_path / "none") in refused(capsys, verb, str(tmp_path / "none"))


def test_a_run_that_is_over_takes_no_snapshot(small_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not running" in refused(capsys, "snapshot", str(small_run))
