from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from tests.analysis.comparing.test_comparison import run
from tests.cli.test_lost_runs import files_up_to
from workbench import views
from workbench.analysis.exporting.export import WRITERS
from workbench.cli.export import TABLES
from workbench.cli.main import main
from workbench.tape import open_tape
from workbench.tape.errors import StorageFull

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


@pytest.mark.parametrize("name", ["x.nc", "x.json", "x.json.gz", "x.gif", "x.svg", "csv", "x.npz"])
def test_a_full_disk_is_one_line_and_leaves_nothing(
    name: str, small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forms = {".nc": "netcdf", ".json": "perfetto", ".gz": "perfetto", ".gif": "gif", ".svg": "svg", "": "csv"}
    suffix = Path(name).suffix
    words = ["export", str(small_run), "--format", forms[suffix]] if suffix in forms else ["replay", str(small_run)]
    more = ["--picture", "lanes"] if suffix == ".svg" else []
    with files_up_to(500):
        assert main([*words, "--out", str(tmp_path / name), *more]) == 3
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("workbench: ")]
    assert len(said) == 1
    assert f"no room for {tmp_path / name}: the disk is full; what was begun is removed; free space there" in said[0]
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_finds_no_room_leaves_what_was_there(small_run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("before", encoding="utf-8")
    with files_up_to(500), pytest.raises(StorageFull, match="what was begun is removed"):
        views.save(views.goodput(open_tape(small_run)), page)
    assert page.read_text(encoding="utf-8") == "before" and list(tmp_path.iterdir()) == [page]
