from __future__ import annotations

import csv
import json
import math
import os
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
import xarray as xr

import workbench as wb
from tests.analysis.runs import EVERY_FAULT, rec, simulated, with_evals
from tests.analysis.tapes import taped
from workbench.analysis.exporting import blocks
from workbench.analysis.exporting.csv_tables import guarded
from workbench.config import ConfigError
from workbench.protocol.records import Kind
from workbench.tape.errors import StorageFull
from workbench.tape.schema import GROUPS, NO_WORD


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    formula = rec(Kind.MESSAGE_REFUSED, 1.0, reason="=cmd|' /C calc'!A0")
    changed = rec(Kind.SETTING_CHANGED, 1.0, setting=1, detail={"values": {"quorum": -2}, "who": "@home"})
    made = [formula, changed, *with_evals(simulated(EVERY_FAULT))[:1500]]
    return taped(tmp_path_factory.mktemp("tapes") / "run", made)


def test_netcdf_read_back_equals_the_tape(tape: xr.DataTree, tmp_path: Path) -> None:
    path = wb.export(tape, "netcdf", tmp_path / "run.nc")
    with xr.open_datatree(path, engine="h5netcdf", mask_and_scale=False, decode_times=False) as read:
        assert {node.path for node in read.subtree} == {node.path for node in tape.subtree}
        for node in tape.subtree:
            there = read[node.path].dataset
            for name, variable in node.dataset.variables.items():
                np.testing.assert_array_equal(there[name].values, variable.values, err_msg=f"{node.path}/{name}")
                assert there[name].dims == variable.dims
                assert there[name].attrs["units"] == variable.attrs["units"]
                if "flag_values" in variable.attrs:
                    assert there[name].attrs["flag_values"].tolist() == variable.attrs["flag_values"]
                    assert there[name].attrs["flag_meanings"] == variable.attrs["flag_meanings"]
        jsons = json.loads(read.attrs["json_attributes"])
        back = {k: json.loads(v) if k in jsons else v for k, v in read.attrs.items() if k != "json_attributes"}
        assert back == tape.attrs and "closed" in jsons and "words" in jsons
    assert "flag_values" in tape["events"].dataset["kind"].attrs  # the tape itself is as it was


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv_has_every_row_of_every_table(tape: xr.DataTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks.blocks, "__defaults__", (100,))
    folder = wb.export(tape, "csv", tmp_path / "run")
    tables = {group.name for group in GROUPS.values() if group.dim != "byte"}
    assert {path.stem for path in folder.iterdir()} == tables
    for name in tables:
        assert len(rows_of(folder, name)) == tape[name].dataset.sizes.get(GROUPS[name].dim, 0), name
    events, words = rows_of(folder, "events"), [*tape.attrs["words"], ""]
    data = tape["events"].dataset
    for at in (0, 1, 250, 1400):
        row = events[at]
        assert row["kind"] == Kind(int(data["kind"][at])).name.lower() and row["time_ns"] == str(
            int(data["time_ns"][at])
        )
        assert row["fragment"] == ("" if data["fragment"][at] == -1 else str(int(data["fragment"][at])))
        clock = data["clock"].values[at].tolist()
        assert [row[f"clock_{label}"] for label in tape.wb.labels] == ["" if c == -1 else str(c) for c in clock]
        assert row["reason"] == guarded(words[int(data["reason"][at])])
    read = pd.read_csv(folder / "contributions.csv")
    np.testing.assert_array_equal(read["digest"].to_numpy(np.uint64), tape["contributions"].dataset["digest"].values)
    np.testing.assert_allclose(read["weight"], tape["contributions"].dataset["weight"].values)
    details = {int(row["event"]): json.loads(row["detail"]) for row in rows_of(folder, "details")}
    records = tape.wb.records()
    for event, detail in details.items():
        whole = json.loads(json.dumps(records[event].detail))
        assert detail == {key: whole[key] for key in detail}
    assert details[1] == {"values": {"quorum": -2}, "who": "@home"}


def test_no_text_of_a_tape_is_a_formula(tape: xr.DataTree, tmp_path: Path) -> None:
    folder = wb.export(tape, "csv", tmp_path / "run")
    assert rows_of(folder, "events")[0]["reason"] == "'=cmd|' /C calc'!A0"
    setting = rows_of(folder, "settings")[0]
    assert (setting["key"], setting["value"], setting["who"]) == ("quorum", "'-2", "'@home")
    for path in folder.iterdir():
        with path.open(newline="", encoding="utf-8") as file:
            for cell in (cell for row in csv.reader(file) for cell in row):
                number = cell.startswith("-") and math.isfinite(float(cell))
                assert number or not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_what_lies_beyond_the_vocabulary_is_in_the_details(tmp_path: Path) -> None:
    tape = taped(tmp_path / "run", [rec(Kind.RUN_ENDED, reason="x" * 200)])
    assert int(tape["events"].dataset["reason"][0]) == NO_WORD
    folder = wb.export(tape, "csv", tmp_path / "out")
    assert rows_of(folder, "events")[0]["reason"] == ""
    piece = tape["details"].dataset["data"].values.tobytes()
    assert msgspec.msgpack.decode(piece)[3] == "x" * 200
    assert json.loads(rows_of(folder, "details")[0]["detail"]) == {}


def test_what_exists_is_replaced_only_when_asked(tape: xr.DataTree, tmp_path: Path) -> None:
    taken, folder = tmp_path / "trace.json", tmp_path / "csv"
    taken.write_text("mine")
    folder.mkdir()
    with pytest.raises(ConfigError, match=r"trace\.json exists; type --force"):
        wb.export(tape, "perfetto", taken)
    assert taken.read_text() == "mine"
    wb.export(tape, "perfetto", taken, force=True)
    assert taken.read_text().startswith("{")
    with pytest.raises(ConfigError, match="csv exists; type --force"):
        wb.export(tape, "csv", folder)
    wb.export(tape, "csv", folder, force=True)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"notes\.txt, which no export wrote"):
        wb.export(tape, "csv", folder, force=True)
    assert (folder / "notes.txt").exists() and (folder / "events.csv").exists()
    assert sorted(os.listdir(tmp_path)) == ["csv", "trace.json"]


@pytest.mark.parametrize(
    ("format", "out", "said"),
    [
        ("perfetto", "no/folder/t.json", "does not exist; make it first"),
        ("perfetto", "", "is no name"),
        ("perfetto", "x" * 300, "File name too long"),
        ("perfetto", ".", "is no name"),
        ("csv", "file", "this is a file"),
        ("netcdf", "folder", "this is a folder"),
        ("parquet", "t", "format 'parquet' is unknown; allowed: perfetto, netcdf, csv"),
    ],
)
def test_names_that_cannot_be(
    tape: xr.DataTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, out: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("folder").mkdir()
    with pytest.raises(ConfigError, match=said):
        wb.export(tape, format, out, force=True)


def test_after_an_error_nothing_is_left(tape: xr.DataTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("workbench.analysis.exporting.perfetto.events", fail)
    with pytest.raises(StorageFull, match=r"no room for .*trace\.json: the disk is full; what was begun"):
        wb.export(tape, "perfetto", tmp_path / "trace.json")
    assert os.listdir(tmp_path) == []
