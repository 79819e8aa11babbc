from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from workbench.cli.inspect import TABLES
from workbench.cli.main import main
from workbench.tape.errors import TapeError


def per_learner(name: str, units: str = "1") -> xr.Dataset:
    values = xr.DataArray(np.array([0.5, 0.25]), dims="learner", attrs={"units": units})
    return xr.Dataset({name: values, "whole": xr.DataArray(0.375, attrs={"long_name": f"{name} of the run"})})


def rounds() -> xr.Dataset:
    count = np.arange(100)
    columns = {f"column_{i}": xr.DataArray(count * i, dims="merge", attrs={"units": "ns"}) for i in range(8)}
    wide = xr.DataArray(np.zeros((100, 40)), dims=("merge", "fragment"), attrs={"long_name": "wide"})
    return xr.Dataset({**columns, "wide": wide, "cube": xr.DataArray(np.zeros((2, 2, 2)), dims=("a", "b", "c"))})


@pytest.fixture(autouse=True)
def analyses(stand_in: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for tape and analyses, on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def open_tape(run: Path) -> Path:
        if run.name == "none":
            raise TapeError(f"{run} holds no tape")
        return run

    def accessor(name: str) -> Callable[[Path], xr.Dataset]:
        return lambda tape: rounds() if name == "rounds" else per_learner(name, "s")

    accessors = {name: accessor(name) for name in TABLES}
    stand_in("workbench.tape", open_tape=open_tape)
    stand_in("workbench.analysis", ACCESSORS=accessors)
    summary = {"tokens_merged": 123456, "val_loss_last": 1.5, "wall_s": 2.0, "goodput": float("nan")}
    stand_in("workbench.analysis.summary", summary=lambda tape: summary)


def test_the_overview_has_units_and_every_learner(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "run"]) == 0
    out = capsys.readouterr().out
    texts = ["tokens merged [tokens]", "123,456", "validation loss last [nats/byte]", "wall [s]", "L0", "L1", "more:"]
    assert [text for text in texts if text not in out] == []
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80


@pytest.mark.parametrize("name", TABLES)
def test_every_analysis_fits_80_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "run", name]) == 0
    out = capsys.readouterr().out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80


def test_what_is_left_out_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "run", "rounds"]) == 0
    out = capsys.readouterr().out
    assert out.count("not shown: 76 rows") == 2
    assert "not shown: wide, merge x fragment, 40 columns" in out
    assert "not shown: cube with 3 dimensions" in out
    assert "column 7" in out


def test_json_holds_everything_with_units(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "run", "rounds", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["data_vars"]["column_7"]["data"]) == 100
    assert data["data_vars"]["column_7"]["attrs"]["units"] == "ns"
    assert main(["inspect", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["goodput"] is None


def test_a_folder_without_a_tape_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "none"]) == 2
    assert capsys.readouterr().err == "workbench: none holds no tape\n"
