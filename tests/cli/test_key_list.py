"""`workbench train --keys`: every key, its value and what is allowed, as a file that --config takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.cli.main import main
from workbench.config import from_toml, preset
from workbench.config.keys import key_types


def test_all_keys_are_told_and_no_run_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--preset", "small-8", "--set", "lead=none", "--keys"]) == 0
    told = capsys.readouterr().out
    assert from_toml(told) == preset("small-8")
    assert sum(" # " in line for line in told.splitlines()) == len(key_types())
    assert any(line.split() == ["quorum", "=", "1", "#", "1", "to", "4096"] for line in told.splitlines())
    assert not list(tmp_path.iterdir())
