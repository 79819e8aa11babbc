from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from tests.analysis.comparing.test_comparison import run
from workbench.analysis.exporting.export import WRITERS
from workbench.cli.export import TABLES
from workbench.cli.main import main

Tell = Callable[..., dict[str, Any]]


def test_each_format_from_the_command_line(tmp_path: Path, told: Tell, capsys: pytest.CaptureFixture[str]) -> None:
    made = str(run(tmp_path / "run", 2.0))
    found = told("export", made, "--format", "perfetto", "--out", str(tmp_path / "t.json"))
    assert found["files"] == 1 and found["bytes"] == (tmp_path / "t.json").stat().st_size
    assert any(e["ph"] == "X" for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"])
    assert told("export", made, "--format", "csv", "--out", str(tmp_path / "csv"))["files"] == 12
    assert main(["export", made, "--format", "netcdf", "--out", str(tmp_path / "t.nc")]) == 0
    assert "one file" in capsys.readouterr().out
    with xr.open_datatree(tmp_path / "t.nc", engine="h5netcdf") as read:
        assert read["merges"].sizes["merge"] == 2
    assert main(["export", made, "--format", "csv", "--out", str(tmp_path / "csv")]) == 2
    assert "exists; type --force to replace it" in capsys.readouterr().err
    assert main(["export", made, "--format", "csv", "--out", str(tmp_path / "csv"), "--force"]) == 0


def test_wrong_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tuple(WRITERS) == TABLES
    for words, said in (
        (["no/run", "--format", "csv", "--out", str(tmp_path / "a")], "no/run holds no tape"),
        (["run", "--format", "xlsx", "--out", "a"], "invalid choice: 'xlsx'"),
        (["run", "--format", "csv"], "--out"),
        (
            ["run", "--format", "csv", "--out", str(tmp_path / "a"), "--speed", "2"],
            "--speed says nothing of --format csv",
        ),
        (["run", "--format", "svg", "--out", str(tmp_path / "a.png")], "does not end in .svg"),
        (["run", "--format", "csv", "--out", str(tmp_path)], "exists; type --force"),
    ):
        assert main(["export", *words]) == 2
        assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("format", "name"), [("csv", "x"), ("netcdf", "x.nc"), ("perfetto", "x.json.gz")])
def test_a_place_that_takes_nothing(format: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its mode allows it, the system does not."""
    made = str(run(tmp_path / "run", 2.0))
    assert main(["export", made, "--format", format, "--out", f"/proc/{name}"]) == 2
    said = capsys.readouterr().err
    assert f"--out /proc/{name}: " in said and "the folder /proc " in said and "folder" in said.split("; type")[1]
    assert said.count("\n") == 1 and "Errno" not in said
