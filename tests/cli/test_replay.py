from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray as xr
import zarr

from workbench.cli.main import main
from workbench.cli.replay import write_weights
from workbench.config import ConfigError
from workbench.tape import store


class Report:
    """What a replay returns, as the command line sees it."""

    merges = 12
    merges_compared = 12
    steps = 48
    final_digest = 0xABC
    verdict = "as the replay judges"

    def __init__(self, first_difference: str | None) -> None:
        self.first_difference = first_difference
        self.bit_exact: bool | None = first_difference is None

    @property
    def report(self) -> Report:
        return self

    def weights(self) -> dict[str, np.ndarray]:
        return {"head": np.arange(3, dtype=np.float32), "block0/norm": np.zeros(2, np.float32)}

    def to_json(self) -> dict[str, Any]:
        return {"bit_exact": self.bit_exact, "merges": self.merges, "first_difference": self.first_difference}


class Machines(NamedTuple):
    """What a second run of the machines returns, as the command line sees it."""

    first_difference: str | None = None
    records: int = 90
    compared: int = 90

    @property
    def equal(self) -> bool:
        return self.first_difference is None


Choose = Callable[..., Report]


@pytest.fixture
def outcome(stand_in: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Choose:
    """Choose what the replay finds."""

    def choose(first_difference: str | None, machines: Machines | None = None) -> Report:
        report = Report(first_difference)

        def replay(run: Any, progress: Callable[[int, int], None], **asked: int | None) -> Report:
            progress(12, 12)
            return report

        def rerun_machines(run: Any) -> Machines:
            if machines is None:
                return Machines()
            return machines

        stand_in("workbench.replay.exact", replay=replay)
        stand_in("workbench.replay.machines", rerun_machines=rerun_machines)
        monkeypatch.setattr(
            "workbench.tape.open_tape", lambda run: xr.DataTree(xr.Dataset(attrs={"config": "a run's"}))
        )
        return report

    return choose


def test_a_bit_exact_replay_writes_the_weights_and_says_so(
    outcome: Choose, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome(None)
    target = tmp_path / "weights"
    assert main(["replay", "run", "--out", str(target)]) == 0
    with np.load(target, allow_pickle=False) as stored:
        assert {name: stored[name].tolist() for name in stored} == {"head": [0, 1, 2], "block0/norm": [0, 0]}
    assert [path.name for path in tmp_path.iterdir()] == ["weights"]
    out = capsys.readouterr().out
    assert "0000000000000abc" in out
    assert "as the replay judges" in out
    assert "first difference" not in out


def test_up_to_a_merge_the_machines_rest(outcome: Choose, capsys: pytest.CaptureFixture[str]) -> None:
    outcome(None)
    assert main(["replay", "run", "--upto", "7", "--workers", "2"]) == 0
    out = capsys.readouterr().out
    assert "merges up to merge 7" in out
    assert "not run again (--upto)" in out
    assert main(["replay", "run", "--upto", "-5"]) == 0
    assert "(-5, counted from the end)" in capsys.readouterr().out
    assert main(["replay", "run", "--workers", "0"]) == 2
    assert "--workers 0: expected 1 or more processes" in capsys.readouterr().err


def test_a_difference_is_named_and_is_code_1(outcome: Choose, capsys: pytest.CaptureFixture[str]) -> None:
    outcome("merge 7 of fragment 3")
    assert main(["replay", "run"]) == 1
    assert "merge 7 of fragment 3" in capsys.readouterr().out


def test_json_is_the_report(outcome: Choose, capsys: pytest.CaptureFixture[str]) -> None:
    outcome("merge 7")
    assert main(["replay", "run", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "bit_exact": False,
        "merges": 12,
        "first_difference": "merge 7",
        "machines_agree": True,
        "machine_records": 90,
        "machines_first_difference": None,
        "config_difference": None,
    }


def test_machines_that_differ_are_code_1_unless_left_out(
    outcome: Choose, capsys: pytest.CaptureFixture[str], told: Callable[..., dict[str, Any]]
) -> None:
    outcome(None, Machines("event 5: merged of syncer: step is 1 on the tape, 2 here", compared=5))
    assert main(["replay", "run"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "machines agree no" in out
    assert "records made again 5 of 90" in out
    assert "event 5: merged of syncer: step is 1" in out
    assert told("replay", "run", code=1)["machines_agree"] is False
    assert main(["replay", "run", "--weights-only"]) == 0
    assert "not run again (--weights-only)" in capsys.readouterr().out
    assert told("replay", "run", "--weights-only")["machine_records"] is None


def test_nothing_to_compare_is_said_and_is_code_0(
    outcome: Choose, capsys: pytest.CaptureFixture[str], told: Callable[..., dict[str, Any]]
) -> None:
    outcome(None, Machines(records=0, compared=0)).bit_exact = None
    assert main(["replay", "run"]) == 0
    out = capsys.readouterr().out
    assert out.count("nothing to compare") == 2
    assert "yes" not in out
    assert (told("replay", "run")["bit_exact"], told("replay", "run")["machines_agree"]) == (None, None)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("", "--out has no name; type --out FILE"),
        ("  ", "has no name"),
        (".", "this is a folder"),
        ("folder", "this is a folder; type a file, for example --out folder/weights.npz"),
        ("file", "this file exists, and nothing is overwritten"),
        ("dangling", "this file exists"),
        ("gone/weights.npz", "does not exist; make it first"),
        ("file/weights.npz", "does not exist"),
        ("x" * 300, "no file can have this name"),
        ("closed/weights.npz", "cannot be written"),
        ("/proc/weights.npz", "the folder /proc "),
        ("weights.npy", "--out weights.npy: an .npz archive is written; type --out weights.npz"),
    ],
)
def test_where_weights_cannot_go_is_said_before_the_work(
    name: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "closed").mkdir()
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    (tmp_path / "dangling").symlink_to("nowhere")
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "closed" and may(path, mode))
    assert main(["replay", "no-run", "--out", name]) == 2  # said before the run is looked at
    err = capsys.readouterr().err
    assert part in err
    assert err.count("\n") == 1
    assert (tmp_path / "file").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_kept(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(source: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refused)
    target = tmp_path / "weights.npz"
    write_weights(target, {"w": np.zeros(2)})
    whole = target.read_bytes()
    with pytest.raises(ConfigError, match="exists by now"):
        write_weights(target, {"w": np.ones(2)})
    assert target.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [target]


def test_a_deleted_or_altered_input_is_noticed(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(small_run, tmp_path / "run"))
    repository = store.open_repository(run / "tape")
    session = repository.writable_session("main")
    array = zarr.open_array(session.store, path="inputs/data")
    array[1000:1008] = 255 - np.asarray(array[1000:1008])
    session.commit("flipped")
    assert main(["replay", str(run)]) in (1, 2)
    session = repository.writable_session("main")
    del zarr.open_group(session.store)["inputs/data"]
    session.commit("deleted")
    capsys.readouterr()
    assert main(["replay", str(run)]) == 2
    err = capsys.readouterr().err
    assert "/inputs/data is missing" in err
    assert f"rm -r {run / 'tape'}" in err


def test_a_changed_config_is_a_warning(small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(shutil.copytree(small_run, tmp_path / "run"))
    text = (run / "config.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(text.replace("rounds = 60", "rounds = 61"), encoding="utf-8")
    assert main(["replay", str(run), "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert "rounds is 61, on the tape 60" in found["config_difference"]
    assert f"workbench: warning: {found['config_difference']}\n" in err
    assert (found["bit_exact"], found["machines_agree"]) == (True, True)
    assert found["machine_records"] > 100
