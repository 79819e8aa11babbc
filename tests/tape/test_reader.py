"""Opening tapes: live, crashed, closed, foreign, damaged, lying about their size."""

from __future__ import annotations

import json
import os
import random
import shutil
import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import xarray as xr
import zarr

from tests.tape.examples import run_records
from tests.tape.test_recorder import written
from workbench.config import ConfigError
from workbench.protocol.records import Kind, Record
from workbench.tape import (
    SCHEMA_VERSION,
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
from workbench.tape.arrays import array_metadata, group_metadata
from workbench.tape.errors import reading
from workbench.tape.schema import EVENTS, GROUPS, describe

RECORDS = run_records(rounds=4)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("closed") / "run", [*RECORDS, Input(3, 0, 1, b"in")])


@pytest.fixture
def tape(closed: Path, tmp_path: Path) -> Path:
    """A copy of a closed tape's folder, to be damaged."""
    return Path(shutil.copytree(closed / "tape", tmp_path / "tape"))


def edited(tape: Path, **changes: Any) -> Path:
    """Change root attributes."""
    repository = store.open_repository(tape)
    attrs = {**store.root_attributes(repository, tape), **changes}
    store.commit(repository, [("zarr.json", group_metadata(attrs))], (), "edited")
    return tape


def one_line(path: Path, match: str) -> None:
    with pytest.raises(TapeError, match=match) as caught:
        open_tape(path)
    assert "\n" not in str(caught.value)


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


def test_damage_says_what_to_type(closed: Path, tape: Path, tmp_path: Path) -> None:
    snapshot = max((tape / "snapshots").iterdir(), key=lambda path: path.stat().st_size)
    snapshot.unlink()
    one_line(tape, "is damaged .*no journal is beside it to make it anew: put back a copy")
    shutil.copy(closed / "journal", tmp_path / "journal")
    one_line(tmp_path, rf"is damaged .*\(rm -r {tape}\) and open {tmp_path} again: its journal makes the tape anew")
    shutil.rmtree(tape)
    assert open_tape(tmp_path).wb.records() == RECORDS


def test_an_altered_configuration_is_damage(closed: Path, tape: Path, tmp_path: Path) -> None:
    shutil.copy(closed / "journal", tmp_path / "journal")
    assert open_tape(tmp_path).wb.records() == RECORDS
    edited(tape, config="iverlap = 1")
    one_line(tmp_path, rf"its configuration is not that of the journal beside it; delete the folder \(rm -r {tape}\)")


def test_altered_metadata_is_put_into_words() -> None:
    with pytest.raises(TapeError, match="the metadata of an array is no JSON") as caught, reading("tape"):
        json.loads('{"a": "\x01"}')
    assert "control character" not in str(caught.value)
    with pytest.raises(TapeError, match="lacks 'shape'"), reading("tape"):
        raise KeyError("shape")


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
                    store.compact(recorder.repository, 5.0)
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


def test_a_folder_without_a_tape(tmp_path: Path) -> None:
    one_line(tmp_path, "holds no tape")
    one_line(tmp_path / "missing", "no such folder")
    with pytest.raises(TapeError, match="neither journal nor tape"):
        open_run_folder(tmp_path)
    with pytest.raises(TapeError, match="no such folder"):
        open_run_folder(tmp_path / "missing")


def test_foreign_stores(tmp_path: Path) -> None:
    xr.Dataset({"x": ("y", [1, 2])}).to_zarr(tmp_path / "zarr", consolidated=False)
    one_line(tmp_path / "zarr", "a Zarr store of something else")
    repository = store.create(tmp_path / "ice")
    session = repository.writable_session("main")
    zarr.create_group(session.store, attributes={"title": "weather"})
    session.commit("x")
    one_line(tmp_path / "ice", "data of something else")


def test_a_newer_schema_is_refused_with_both_versions(tape: Path) -> None:
    one_line(
        edited(tape, schema_version=SCHEMA_VERSION + 6), f"version {SCHEMA_VERSION + 6}, newer than {SCHEMA_VERSION}"
    )


def test_another_runs_tape_is_not_written(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", RECORDS)
    (folder / "journal").unlink()
    with JournalWriter(folder / "journal", {"run_id": "other"}), pytest.raises(TapeError, match="of run 'r'"):
        Recorder(folder)


def test_variables_of_different_length_are_refused(tape: Path) -> None:
    variable = EVENTS.variable("tokens")
    metadata = array_metadata(variable, [3], [EVENTS.chunk], ["event"], [])
    store.commit(store.open_repository(tape), [("events/tokens/zarr.json", metadata)], (), "ragged")
    one_line(tape, "/events/tokens has 3 rows")


def test_arrays_larger_than_what_is_stored_are_refused_before_loading(tape: Path) -> None:
    rows = store.root_attributes(store.open_repository(tape), tape)["rows"]
    edited(tape, rows={**rows, "events": 10**13})
    one_line(tape, "has .* rows, but the tape says")
    items = []
    for variable in EVENTS.variables:
        shape, chunks, names = [10**13], [EVENTS.chunk], ["event"]
        if variable.axis:
            shape, chunks, names = [*shape, 5], [*chunks, 8], [*names, variable.axis]
        items.append((f"events/{variable.name}/zarr.json", array_metadata(variable, shape, chunks, names, [])))
    store.commit(store.open_repository(tape), items, (), "bomb")
    one_line(tape, "the store lacks the chunks")
    kind = array_metadata(EVENTS.variable("kind"), [10**13], [10**12], ["event"], [])
    store.commit(store.open_repository(tape), [("events/kind/zarr.json", kind)], (), "one huge chunk")
    one_line(tape, "a chunk of /events/kind")


def test_an_axis_wider_than_any_run_is_refused(tape: Path) -> None:
    clock = array_metadata(EVENTS.variable("clock"), [len(RECORDS), 10**9], [8192, 8], ["event", "process"], [])
    store.commit(store.open_repository(tape), [("events/clock/zarr.json", clock)], (), "wide")
    one_line(tape, "/events/clock has 1000000000 columns")


@pytest.mark.parametrize("key", ["rows", "words", "journal_offset"])
def test_missing_root_attributes(tape: Path, key: str) -> None:
    repository = store.open_repository(tape)
    attrs = store.root_attributes(repository, tape)
    del attrs[key]
    store.commit(repository, [("zarr.json", group_metadata(attrs))], (), "edited")
    one_line(tape, key)


def damage(path: Path, how: str, chance: random.Random) -> None:
    data = path.read_bytes()
    if how == "delete":
        path.unlink()
    elif how == "truncate":
        path.write_bytes(data[: len(data) // 2])
    else:
        at = chance.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])


@pytest.mark.parametrize("how", ["delete", "truncate", "alter"])
@pytest.mark.parametrize("part", ["chunks", "manifests", "snapshots", "refs"])
def test_a_damaged_file_is_one_clear_error_or_changes_nothing(tape: Path, part: str, how: str) -> None:
    chance = random.Random(f"{part} {how}")
    files = sorted(path for path in (tape / part).rglob("*") if path.is_file())
    damage(chance.choice(files), how, chance)
    try:
        tree = open_tape(tape)
        tree.load()
        assert tree.wb.records() == RECORDS
    except TapeError as error:
        assert "\n" not in str(error) and str(tape) in str(error)
    else:
        assert part in ("snapshots", "manifests"), "the newest commit does not need every file"


def test_a_reference_outside_the_store_is_not_followed(tape: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"x" * 100000)
    repository = store.open_repository(tape)
    session = repository.writable_session("main")
    session.store.set_virtual_ref("events/kind/c/0", f"file://{secret}", offset=0, length=64, validate_container=False)
    session.commit("virtual")
    tree = open_tape(tape)
    with pytest.raises(TapeError, match="damaged"):
        tree["events"].dataset["kind"].load()


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
