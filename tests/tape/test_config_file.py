"""A run's config.toml beside the configuration that the tape holds."""

from __future__ import annotations

from pathlib import Path

import pytest
import xarray as xr

from workbench.config import RunConfig, to_toml
from workbench.tape import config_difference

CONFIG = RunConfig(rounds=20)
TAPE = xr.DataTree(xr.Dataset(attrs={"config": to_toml(CONFIG)}))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "journal").touch()
    (tmp_path / "config.toml").write_text(to_toml(CONFIG), encoding="utf-8")
    return tmp_path


def test_the_same_configuration_is_no_difference(run: Path, tmp_path: Path) -> None:
    assert config_difference(run, TAPE) is None
    (run / "config.toml").write_text("# a remark\n" + to_toml(CONFIG), encoding="utf-8")
    assert config_difference(run, TAPE) is None
    (run / "config.toml").unlink()
    assert config_difference(run / "tape", TAPE) is None
    assert config_difference(run, xr.DataTree()) is None


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (to_toml(RunConfig(rounds=21)).encode(), "was changed after the run: rounds is 21, on the tape 20; the conf"),
        (to_toml(RunConfig(rounds=21, seed=9)).encode(), "and 1 more keys; the configuration on the tape counts"),
        (b"rounds = [", "is no configuration ("),
        (b"rounds = -1", "is no configuration ("),
        (b"\xff", "cannot be read (it is no UTF-8 text)"),
        (None, "is missing; the configuration on the tape counts"),
    ],
)
def test_a_difference_is_one_line(run: Path, text: bytes | None, part: str) -> None:
    (run / "config.toml").unlink()
    if text is not None:
        (run / "config.toml").write_bytes(text)
    found = config_difference(run, TAPE)
    assert found is not None
    assert str(run / "config.toml") in found
    assert part in found
    assert "\n" not in found
