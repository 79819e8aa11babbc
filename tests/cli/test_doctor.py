from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from workbench.cli import checks
from workbench.cli.checks import CHECKS, Finding
from workbench.cli.main import main


@pytest.fixture
def few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the check that starts JAX's devices."""
    monkeypatch.delitem(CHECKS, "devices")


def broken(folder: Path) -> Iterator[Finding]:
    raise RuntimeError("driver is gone\nand a stack of calls")


def test_it_shows_this_machine(few_checks: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--out", str(tmp_path / "not" / "yet")]) == 0
    out = capsys.readouterr().out
    names = ["python", "jaxlib", "icechunk", "cores", "memory", "disk", "write speed", "xla_flags", "cpu_features"]
    assert [name for name in names if name not in out] == []
    assert str(tmp_path) in out.replace("\n", "")
    assert list(tmp_path.iterdir()) == []


def test_devices_are_named() -> None:
    [finding] = checks.devices(Path())
    assert "platform" in finding.value


def test_a_check_that_raises_is_reported_and_the_others_go_on(
    few_checks: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(CHECKS, "memory", broken)
    assert main(["doctor", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    by_name = {entry["name"]: entry for entry in report["checks"]}
    assert report["ok"] is False
    assert by_name["memory"]["note"] == "RuntimeError: driver is gone"
    assert by_name["disk"]["broken"] is False


def test_a_missing_package_is_named_with_what_to_type(
    few_checks: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def version(name: str) -> str:
        if name == "zarr":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "broken: zarr" in out
    assert "type: make setup" in out


def test_little_space_is_a_warning_only(
    few_checks: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda path: SimpleNamespace(free=10**6))
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "warning: disk: little space" in out
    assert "--out FOLDER" in out


def test_uncompiled_packages_are_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    origin = tmp_path / "jax" / "__init__.py"
    monkeypatch.setattr(checks.importlib.util, "find_spec", lambda name: SimpleNamespace(origin=str(origin)))
    [finding] = checks.bytecode(Path())
    assert finding.value == "missing"
    assert finding.type_this.endswith(str(tmp_path))
