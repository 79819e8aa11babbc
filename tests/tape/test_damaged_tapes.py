"""Tapes that are damaged, foreign, of another version, or lie about their size: one clear line each."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
import zarr

from tests.tape.examples import RECORDS
from workbench.tape import (
    SCHEMA_VERSION,
    TapeError,
    open_run_folder,
    open_tape,
    store,
)
from workbench.tape.arrays import array_metadata, group_metadata
from workbench.tape.errors import reading
from workbench.tape.schema import EVENTS


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


def test_damage_says_what_to_type(closed: Path, tape: Path, tmp_path: Path) -> None:
    snapshot = max((tape / "snapshots").iterdir(), key=lambda path: path.stat().st_size)
    snapshot.unlink()
    said = "is damaged, .*: a file of it is missing; .*, "
    one_line(tape, f"{said}put back a copy of it: there is no journal beside it that could make it anew$")
    shutil.copy(closed / "journal", tmp_path / "journal")
    anew = rf"delete the folder \(rm -r {tape}\) and open {tmp_path} again: its journal makes the tape anew"
    one_line(tmp_path, said + anew)
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
    again = "compressed data of an array are not as they were written; open it again, and if it says the same, put back"
    with (
        pytest.raises(TapeError, match=f"^tape is damaged, or was compacted since it was opened: {again}"),
        reading("tape"),
    ):
        raise RuntimeError("Zstd decompression error: invalid input data")
    with pytest.raises(TapeError, match="lacks 'shape'"), reading("tape"):
        raise KeyError("shape")


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


def test_a_folder_without_a_tape(tmp_path: Path) -> None:
    one_line(tmp_path, "holds no tape")
    one_line(tmp_path / "missing", "no such folder")
    with pytest.raises(TapeError, match="neither journal nor tape"):
        open_run_folder(tmp_path)
    with pytest.raises(TapeError, match="no such folder"):
        open_run_folder(tmp_path / "missing")
