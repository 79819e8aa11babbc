"""Opening tapes: live, crashed, closed, where nothing can be written, and beside a writer."""

from __future__ import annotations

import json
import os
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import xarray as xr

from tests.tape.examples import RECORDS
from tests.tape.test_recorder import written
from workbench.config import ConfigError
from workbench.protocol.records import Kind, Record
from workbench.tape import (
    Input,
    JournalWriter,
    Recorder,
    StorageFull,
    TapeError,
    create_run_folder,
    open_run_folder,
    open_tape,
    store,
)
from workbench.tape.schema import GROUPS, describe


def test_plain_xarray_opens_a_tape_without_a_warning(closed: Path) -> None:
    repository = store.open_repository(closed / "tape")
    plain = xr.open_datatree(store.read_store(repository), engine="zarr", consolidated=False).load()
    ours = open_tape(closed).load()
    assert set(plain.groups) == set(ours.groups) == {"/", *(f"/{g.where}" for g in GROUPS.values())}
    for group in GROUPS.values():
        for variable in group.variables:
            left, right = plain[group.where].dataset[variable.name], ours[group.where].dataset[variable.name]
            np.testing.assert_array_equal(left.values.astype(right.dtype), right.values)


def test_every_variable_has_cf_attributes(closed: Path) -> None:
    tree = open_tape(closed)
    text = describe()
    for group in GROUPS.values():
        for variable in group.variables:
            stored = tree[group.where].dataset[variable.name]
            assert stored.attrs["units"] and stored.attrs["long_name"]
            assert f"{variable.name} ({' x '.join(map(str, stored.dims))}, {variable.dtype})" in text
            if "flag_values" in stored.attrs:
                assert len(stored.attrs["flag_values"]) == len(stored.attrs["flag_meanings"].split())
                assert set(np.unique(stored.values)) <= set(stored.attrs["flag_values"])
    kinds = tree["events"].dataset["kind"].attrs
    assert dict(zip(kinds["flag_values"], kinds["flag_meanings"].split(), strict=True))[int(Kind.MERGED)] == "merged"


def test_navigation(closed: Path) -> None:
    tree = open_tape(closed)
    merged = tree.wb.events("merged")
    assert merged["event"].values.tolist() == [i for i, r in enumerate(RECORDS) if r.kind == Kind.MERGED]
    both = tree.wb.events([Kind.MERGED, "step_ended"])
    assert both.sizes["event"] == merged.sizes["event"] + tree["steps"].sizes["step"]
    assert tree.wb.learners == [0, 1] and tree.wb.closed
    assert tree.wb.reasons()[[r.kind for r in RECORDS].index(Kind.RUN_ENDED)] == "rounds"
    dense = tree.wb.merge_learner()
    assert dense["c_tokens"].values.tolist() == [[512, 512], [512, -1], [512, 512], [512, -1]]
    with pytest.raises(TapeError, match="no kind of event"):
        tree.wb.events("merge")
    with pytest.raises(AttributeError, match="a tape has no 'stalenes'"):
        tree.wb.stalenes()
    with pytest.raises(TapeError, match="no tape"):
        xr.DataTree(name="other").wb  # noqa: B018


def test_analyses_are_called_with_the_tree(closed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = tmp_path / "an_analysis.py"
    module.write_text("__all__ = ['rows']\ndef rows(tree, times=1):\n    return times * tree['steps'].sizes['step']\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("workbench.tape.accessor.ANALYSES", ("an_analysis", "no_such_module"))
    tree = open_tape(closed)
    assert tree.wb.rows(times=2) == 2 * tree["steps"].sizes["step"] and "rows" in dir(tree.wb)


def test_a_crashed_run_is_completed_when_opened(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "journal", {"run_id": "r"}) as journal:
        journal.append(RECORDS[:5])
        recorder = Recorder(tmp_path)
        recorder.drain()
        end = journal.append(RECORDS[5:])
        journal.append(RECORDS[:1])
        assert open_tape(tmp_path)["events"].sizes["event"] == 5, "a live run's tape reaches to its last commit"
        recorder.release()
    os.truncate(tmp_path / "journal", end + 11)
    tree = open_tape(tmp_path)
    assert tree.wb.records() == RECORDS and not tree.wb.closed
    assert open_tape(tmp_path).wb.records() == RECORDS


@pytest.mark.parametrize("cut", [1, 7, 19, 30])
def test_what_a_crash_tore_off_is_reported_and_all_before_it_is_there(cut: int, tmp_path: Path) -> None:
    """REPORTED D6: opened before and after a writer goes on, and where the tape is new."""
    with JournalWriter(tmp_path / "journal", {"run_id": "r"}) as journal:
        whole = journal.append(RECORDS[:6])
        end = journal.append([msgspec.structs.replace(RECORDS[6], reason="a last frame of over thirty bytes")])
    os.truncate(tmp_path / "journal", end - cut)
    for _ in range(2):
        tree = open_tape(tmp_path)
        assert tree.wb.records() == RECORDS[:6]
        assert tree.attrs["torn_bytes"] == end - cut - whole
    with JournalWriter(tmp_path / "journal") as journal:
        journal.append(RECORDS[6:7])
        assert open_tape(tmp_path).attrs["torn_bytes"] == end - cut - whole
    tree = open_tape(tmp_path)
    assert tree.wb.records() == RECORDS[:7] and tree.attrs["torn_bytes"] == end - cut - whole


def test_a_folder_that_cannot_be_written_is_read_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JournalWriter(tmp_path / "journal", {"run_id": "r"}) as journal:
        journal.append([*RECORDS, Input(0, 0, 3, b"q")])
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    tree = open_tape(tmp_path)
    assert tree.wb.records() == RECORDS and tree.wb.inputs() == [Input(0, 0, 3, b"q")]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_without_room_is_read_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, begin = store.commit, store.create

    def no_room(repository: Any, *rest: Any) -> None:
        if str(tmp_path) in str(repository.storage) or repository in on_disk:
            raise StorageFull("no room for the tape in its folder")
        commit(repository, *rest)

    on_disk: list[Any] = []

    def create(path: Path | None) -> Any:
        repository = begin(path)
        if path is not None:
            on_disk.append(repository)
        return repository

    for drained in (0, 30):
        folder = tmp_path / f"run{drained}"
        folder.mkdir()
        with JournalWriter(folder / "journal", {"run_id": "r"}) as journal:
            journal.append(RECORDS[:drained])
            if drained:
                recorder = Recorder(folder)
                recorder.drain()
                recorder.release()
            journal.append(RECORDS[drained:])
        before = sorted(path for path in folder.rglob("*") if path.name != "tape.lock")
        with monkeypatch.context() as patch:
            patch.setattr(store, "create", create)
            patch.setattr(store, "commit", no_room)
            tree = open_tape(folder)
        assert tree.wb.records() == RECORDS
        assert sorted(path for path in folder.rglob("*") if path.name != "tape.lock") == before


def test_no_room_for_a_lock_is_read_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JournalWriter(tmp_path / "journal", {"run_id": "r"}) as journal:
        journal.append(RECORDS)
    really = os.open

    def full(path: Any, flags: int, *mode: int) -> int:
        if str(path).endswith("tape.lock") and flags & os.O_CREAT:
            raise OSError(28, "No space left on device")
        return really(path, flags, *mode)

    monkeypatch.setattr(os, "open", full)
    assert open_tape(tmp_path).wb.records() == RECORDS
    assert not (tmp_path / "tape").exists()


def test_readers_beside_a_writer_see_whole_commits_only(tmp_path: Path) -> None:
    """REPORTED X1."""
    steps = [Record(Kind.STEP_ENDED, 3, 0, seq, seq, step=seq, clock=(0, 0, 0, seq)) for seq in range(1, 2001)]
    failures: list[BaseException] = []
    done = threading.Event()

    def write() -> None:
        try:
            with JournalWriter(tmp_path / "journal", {"run_id": "r"}) as journal, Recorder(tmp_path) as recorder:
                started.set()
                for start in range(0, len(steps), 100):
                    journal.append(steps[start : start + 100])
                    recorder.drain()
                    store.compact(recorder.repository, store.now() - timedelta(seconds=5))
        except BaseException as error:
            failures.append(error)
        finally:
            started.set()
            done.set()

    started = threading.Event()
    writer = threading.Thread(target=write)
    writer.start()
    started.wait()
    lengths: list[int] = []
    while not done.is_set() or not lengths:
        tree = open_tape(tmp_path)
        seen = tree.wb.records()
        assert seen == steps[: len(seen)] and tree["steps"].sizes["step"] == len(seen)
        lengths.append(len(seen))
    writer.join()
    assert not failures and lengths == sorted(lengths) and len(set(lengths)) > 1
    assert open_tape(tmp_path).wb.records() == steps


def test_another_runs_tape_is_not_written(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", RECORDS)
    (folder / "journal").unlink()
    with JournalWriter(folder / "journal", {"run_id": "other"}), pytest.raises(TapeError, match="of run 'r'"):
        Recorder(folder)


def test_run_folder_is_made_once(tmp_path: Path) -> None:
    folder = create_run_folder(tmp_path / "runs" / "a", "learners = 4\n")
    assert folder.config.read_text() == "learners = 4\n" and folder.config.stat().st_mode & 0o777 == 0o600
    assert open_run_folder.__doc__ and folder.snapshots.is_dir() and folder.logs.is_dir()
    with pytest.raises(ConfigError, match=r"already holds a run; .*--out .*a-2$"):
        create_run_folder(tmp_path / "runs" / "a", "")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x")
    with pytest.raises(ConfigError, match="already holds other files"):
        create_run_folder(tmp_path / "other", "")


def test_header_is_on_the_root_as_json(tmp_path: Path) -> None:
    header = {"run_id": "r", "config": "a = 1", "seeds": {"data": 2**63}, "digest": b"\x01", "nan": float("nan")}
    with JournalWriter(tmp_path / "journal", header):
        Recorder(tmp_path).close()
    attrs = open_tape(tmp_path).attrs
    assert attrs["config"] == "a = 1" and attrs["seeds"] == {"data": 2**63} and attrs["digest"] == "01"
    assert attrs["nan"] == "nan" and attrs["closed"] and json.dumps(dict(attrs), allow_nan=False)
