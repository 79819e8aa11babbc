"""Every wrong request is one line and code 2, and leaves what is there as it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import zarr

from workbench.cli.main import main
from workbench.tape import store

Refused = Callable[..., str]
KILL = '[[fault]]\nkind = "kill"\nlearner = 0\nat_s = 1.0\n'


def contents(folder: Path) -> dict[str, bytes]:
    """Names and bytes of everything below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if os.access(path, os.R_OK)}


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Ask for something, expect one line, code 2 and no change below ``tmp_path``; return the line."""

    def ask(*words: str | Path) -> str:
        before = contents(tmp_path)
        capsys.readouterr()
        assert main([str(word) for word in words]) == 2
        captured = capsys.readouterr()
        lines = [line for line in captured.err.splitlines() if line.startswith("workbench: ")]
        assert len(lines) == 1 and captured.out == "", captured
        assert contents(tmp_path) == before
        return lines[0]

    return ask


@pytest.mark.parametrize(
    ("keys", "parts"),
    [
        (["learnrs=3"], ["unknown key 'learnrs'", "nearest: learners; all keys: workbench train --keys"]),
        (["zzz=3"], ["unknown key 'zzz'; all keys: workbench train --keys"]),
        (["model.widht=3"], ["unknown key 'model.widht'", "model.width"]),
        (["quorum=9"], ["quorum = 9", "learners = 4", "--set quorum=4"]),
        (["quorum=0"], ["quorum = 0", "allowed: 1 to"]),
        (["fragments=13"], ["fragments = 13", "period = 12", "--set fragments=12"]),
        (["fragments=22", "period=24"], ["fragments = 22", "21 tensors", "--set fragments=21"]),
        (["overlap=12"], ["overlap = 12", "period = 12", "--set overlap=11"]),
        (["learners"], ["--set learners has no value", "KEY=VALUE"]),
        (["grace=soon"], ["grace = 'soon'", "adaptive"]),
        (["rounds=many"], ["rounds = 'many'", "whole number"]),
    ],
)
def test_keys_that_cannot_work(keys: list[str], parts: list[str], refused: Refused, tmp_path: Path) -> None:
    sets = [word for key in keys for word in ("--set", key)]
    line = refused("train", *sets, "--out", tmp_path / "run")
    assert [part for part in parts if part not in line] == []
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("seed", [["--seed", "-1"], ["--seed=-1"], ["--seed", "1.5"], ["--seed", str(2**70)]])
def test_seeds_that_cannot_be(seed: list[str], refused: Refused, tmp_path: Path) -> None:
    assert "seed = " in refused("train", *seed, "--out", tmp_path / "run")


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.mkdir(), "holds nothing to train on (no files)"),
        (lambda path: path.touch(), "is empty"),
        (lambda path: path.write_bytes(b"too short"), "has 9 bytes"),
        (lambda path: path.write_bytes(bytes(200)), "one sequence of 65 for each of 4 learners"),
        (lambda path: unreadable(path), "holds nothing to train on"),
    ],
)
def test_data_that_cannot_be_trained_on(
    make: Callable[[Path], None], part: str, refused: Refused, tmp_path: Path
) -> None:
    make(tmp_path / "data")
    assert part in refused("train", "--data", tmp_path / "data", "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def unreadable(folder: Path) -> None:
    """Make a folder of which nothing can be read, by whatever user: a pipe, an empty file, links, a closed file."""
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "empty").touch()
    (folder / "broken").symlink_to(folder / "nowhere")
    (folder / "outside").symlink_to(__file__)
    if os.geteuid() != 0:
        (folder / "closed").write_text("text")
        (folder / "closed").chmod(0)


def test_a_data_path_without_a_path(refused: Refused, tmp_path: Path) -> None:
    assert "needs data.path" in refused("train", "--set", "data.source=path", "--out", tmp_path / "run")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (None, "cannot be read"),
        ("", "holds no [[fault]] table"),
        ("kind kill", "is not TOML"),
        (KILL.replace("kill", "fire"), "kind = 'fire' is unknown"),
        (KILL.replace("learner = 0", "learner = 4"), "learner = 4; allowed: 0 to 3"),
        (KILL.replace("learner = 0\n", ""), "allowed: 0 to 3"),
        (KILL.replace("1.0", "-1.0"), "at_s = -1.0; allowed: a number from 0"),
        (KILL.replace("at_s = 1.0", ""), "at_s (seconds from the start) is missing"),
        (KILL + "lasts_s = 3\n", "unknown key 'lasts_s'"),
        (KILL + KILL.replace("1.0", "nan"), "fault 2: at_s = nan"),
    ],
)
def test_scenarios_that_cannot_be(text: str | None, part: str, refused: Refused, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "faults.toml").write_text(text, encoding="utf-8")
    line = refused("train", "--faults", tmp_path / "faults.toml", "--out", tmp_path / "run")
    assert part in line and "faults.toml" in line
    assert not (tmp_path / "run").exists()


def test_a_scenario_that_is_no_text(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "faults.toml").write_bytes(b"\xff\xfe")
    assert "cannot be read" in refused("train", "--faults", tmp_path / "faults.toml", "--out", tmp_path / "run")
    assert "cannot be read" in refused("train", "--faults", tmp_path, "--out", tmp_path / "run")


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ("kinds=fire", "kind 'fire' is unknown"),
        ("mtbi=-3s", "mtbi = -3"),
        ("mtbi=nan", "mtbi = nan"),
        ("mtbi=soon", "is not a number"),
        ("mtbi=1e-9", "allowed with real processes: from 0.2 s"),
        ("storm=3", "unknown key 'storm'"),
        ("down=-1", "down = -1"),
    ],
)
def test_storms_that_cannot_be(spec: str, part: str, refused: Refused, tmp_path: Path) -> None:
    assert part in refused("train", "--chaos", spec, "--out", tmp_path / "run")


def test_a_storm_of_too_many_faults_in_virtual_time(refused: Refused, tmp_path: Path) -> None:
    words = ("train", "--clock", "virtual", "--chaos", "mtbi=1e-9", "--out", tmp_path / "run")
    assert "allowed: up to 100000" in refused(*words)


def test_a_folder_that_holds_something_is_left_alone(small_run: Path, refused: Refused, tmp_path: Path) -> None:
    run = Path(shutil.copytree(small_run, tmp_path / "run"))
    assert f"already holds a run; give a new folder, for example --out {tmp_path / 'run-2'}" in refused(
        "train", "--out", run
    )
    assert "exists" in refused("train", "--out", run / "config.toml")
    assert "Not a directory" in refused("train", "--out", run / "config.toml" / "inside")


def foreign_zarr(path: Path) -> None:
    """Make a Zarr store of something else."""
    zarr.open_group(path, mode="w").create_array("a", shape=(3,), dtype="i4")


def foreign_icechunk(path: Path) -> None:
    """Make an Icechunk repository of something else."""
    path.mkdir(parents=True)
    session = store.create(path).writable_session("main")
    zarr.open_group(session.store, mode="w").create_array("a", shape=(3,), dtype="i4")
    session.commit("something else")


def newer(run: Path) -> None:
    """Make the tape of a run look as if a later version had written it."""
    session = store.open_repository(run / "tape").writable_session("main")
    zarr.open_group(session.store, mode="a").attrs["schema_version"] = 99
    session.commit("newer")


def truncated(run: Path) -> None:
    """Cut every chunk of a tape in half."""
    for path in (run / "tape" / "chunks").iterdir():
        os.truncate(path, path.stat().st_size // 2)


def no_tape(run: Path) -> None:
    """Leave neither tape nor journal."""
    shutil.rmtree(run / "tape")
    (run / "journal").unlink()


def foreign_journal(run: Path) -> None:
    """Leave a journal of something else, and no tape."""
    shutil.rmtree(run / "tape")
    (run / "journal").write_bytes(b"something else")


VERBS = pytest.mark.parametrize("verb", ["inspect", "replay"])


@VERBS
@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda path: None, "there is no such folder"),
        (lambda path: path.mkdir(), "holds no tape"),
        (lambda path: path.touch(), "it is a file"),
        (lambda path: foreign_zarr(path / "tape"), "a Zarr store of something else"),
        (lambda path: foreign_zarr(path), "a Zarr store of something else"),
        (lambda path: foreign_icechunk(path / "tape"), "data of something else"),
    ],
)
def test_what_is_no_run(verb: str, make: Callable[[Path], None], part: str, refused: Refused, tmp_path: Path) -> None:
    make(tmp_path / "run")
    assert part in refused(verb, tmp_path / "run")


@VERBS
@pytest.mark.parametrize(
    ("damage", "part"),
    [
        (newer, "schema version 99, newer than 1"),
        (truncated, "is damaged"),
        (lambda run: shutil.rmtree(run / "tape" / "manifests"), "is damaged"),
        (lambda run: shutil.rmtree(run / "tape" / "snapshots"), "is damaged"),
        (lambda run: shutil.rmtree(run / "tape" / "refs"), "holds no tape"),
        (no_tape, "holds no tape"),
        (foreign_journal, "is no journal of this workbench"),
    ],
)
def test_runs_that_are_damaged(
    verb: str, damage: Callable[[Path], None], part: str, small_run: Path, refused: Refused, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(small_run, tmp_path / "run"))
    damage(run)
    assert part in refused(verb, run)


@VERBS
def test_a_manifest_that_is_gone(verb: str, small_run: Path, refused: Refused, tmp_path: Path) -> None:
    run = Path(shutil.copytree(small_run, tmp_path / "run"))
    manifests = sorted((run / "tape" / "manifests").iterdir(), key=lambda path: path.stat().st_size)
    for path in manifests[len(manifests) // 2 :]:
        path.unlink()
    assert "is damaged" in refused(verb, run)


def test_a_tape_that_is_gone_comes_back_from_the_journal(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(small_run, tmp_path / "run"))
    shutil.rmtree(run / "tape")
    assert main(["inspect", str(run)]) == 0
    assert "finished: 60 merges" in capsys.readouterr().out
