"""The journal: whole frames or nothing, one writer, room or a clear refusal."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from tests.tape.examples import run_records
from tests.tape.strategies import journals
from workbench.protocol.records import Kind, Record
from workbench.tape import Input, JournalWriter, StorageFull, TapeError, open_tape, read_header, read_journal
from workbench.tape.frames import HEAD

HEADER = {"run_id": "r", "seeds": {"data": 3}, "manifest": [["w", [2, 3]]]}


def step(seq: int, **fields: Any) -> Record:
    return Record(Kind.STEP_ENDED, process=3, incarnation=0, seq=seq, time_ns=seq, **fields)


def journal_of(path: Path, *batches: list[Record | Input]) -> list[int]:
    """Write a journal; return its length after each append."""
    with JournalWriter(path, HEADER) as journal:
        return [journal.offset, *(journal.append(batch) for batch in batches)]


@settings(max_examples=30)
@given(journals())
def test_records_come_back(tmp_path_factory: pytest.TempPathFactory, records: list[Record]) -> None:
    path = tmp_path_factory.mktemp("j") / "journal"
    journal_of(path, list(records))
    contents = read_journal(path)
    assert contents.records == records and contents.dropped_bytes == 0
    assert contents.header["seeds"] == {"data": 3}


def test_inputs_keep_their_place(tmp_path: Path) -> None:
    first, second = Input(3, 0, 5, b"a"), Input(0, 1, 6, b"\xff" * 100)
    journal_of(tmp_path / "journal", [step(1), first, step(2), step(3), second], [step(4)])
    contents = read_journal(tmp_path / "journal")
    assert contents.inputs == [first, second] and contents.positions == [1, 3]
    assert [r.seq for r in contents.records] == [1, 2, 3, 4]


def test_torn_tail_is_cut_at_every_byte_of_the_last_frame(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    _, whole, end = journal_of(path, [step(1), step(2)], [step(3, reason="a last frame of well over thirty bytes")])
    data = path.read_bytes()
    assert end - whole > 30
    for cut in range(1, end - whole + 1):
        path.write_bytes(data[: end - cut])
        contents = read_journal(path)
        assert [r.seq for r in contents.records] == [1, 2]
        assert contents.offset == whole and contents.dropped_bytes == end - whole - cut


def seqs_of(path: Path) -> list[int] | str:
    """Numbers of the records in a journal, or what its reading says."""
    try:
        return [r.seq for r in read_journal(path).records]
    except TapeError as error:
        assert "\n" not in str(error)
        return str(error)


@pytest.mark.parametrize("flip", [0x01, 0x10, 0x80, 0xFF])
def test_no_altered_byte_makes_records_vanish_in_silence(tmp_path: Path, flip: int) -> None:
    path = tmp_path / "journal"
    ends = journal_of(path, [step(1)], [step(2), Input(3, 0, 5, b"a" * 9)], [step(3)], [step(4)])
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :])
        found = seqs_of(path)
        in_last = at >= ends[-2]
        if isinstance(found, str):
            assert (
                "no journal" in found
                or f"{len(data) - max(e for e in ends if e <= at)} bytes follow" in found
                or (ends[1] < at < ends[2] and "bytes follow" in found)
            )  # the second append has two frames
        else:
            assert found == [1, 2, 3, 4] or (in_last and found == [1, 2, 3]), f"byte {at}"
        if not in_last and found == [1, 2, 3, 4]:
            assert data[at - 4 : at + 4].count(0) >= 3  # the padding of a head


def test_damage_is_named_and_a_writer_does_not_continue_it(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first, second, end = journal_of(path, [step(1)], [step(2)])
    data = path.read_bytes()
    middle = (first + second) // 2
    damaged = data[: middle - 4] + b"????????" + data[middle + 4 :]
    path.write_bytes(damaged)
    cure = f"truncate -s {first} {path}"
    for attempt in (read_journal, lambda path: read_journal(path, 0, 1), lambda path: JournalWriter(path, HEADER)):
        with pytest.raises(TapeError, match=f"damaged at byte {first}: .*{end - first} bytes follow.*{cure}"):
            attempt(path)
        assert path.read_bytes() == damaged
    with pytest.raises(TapeError, match="damaged at byte"):
        open_tape(tmp_path)
    os.truncate(path, first)
    assert read_journal(path).records == []


def test_a_length_that_points_past_the_end_hides_no_sound_frame(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first, second, end = journal_of(path, [step(1)], [step(2)])
    data = path.read_bytes()
    for length in (end - first - HEAD.size, end, 2**32 - 1):  # to the very end, past it, absurd
        path.write_bytes(data[:first] + length.to_bytes(4, "little") + data[first + 4 :])
        with pytest.raises(TapeError, match=f"a sound frame stands at byte {second}"):
            read_journal(path)


def test_zeros_that_a_crash_left_behind_are_a_torn_tail(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    *_, end = journal_of(path, [step(1)])
    os.truncate(path, end + 5000)
    contents = read_journal(path)
    assert (contents.offset, contents.dropped_bytes, len(contents.records)) == (end, 5000, 1)


def test_a_frame_larger_than_the_slice_is_read_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first, second, _ = journal_of(path, [step(1, reason="y" * 5000)], [step(2)])
    contents = read_journal(path, first, limit_bytes=3)
    assert (contents.offset, contents.dropped_bytes) == (second, 0)
    os.truncate(path, second - 1)
    assert read_journal(path, first, limit_bytes=3).dropped_bytes == second - 1 - first


def test_an_absurd_length_allocates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    _, end = journal_of(path, [step(1)])
    with path.open("ab") as file:
        file.write(HEAD.pack(2**32 - 1, 2, b"\0\0\0", 0) + b"x" * 50)
    contents = read_journal(path)
    assert contents.offset == end and contents.dropped_bytes == HEAD.size + 50
    path.write_bytes(HEAD.pack(2**32 - 1, 1, b"\0\0\0", 0))
    with pytest.raises(TapeError, match="no journal of this workbench"):
        read_journal(path)


def test_writer_continues_behind_a_torn_tail_and_keeps_what_it_cuts(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    _, whole, end = journal_of(path, [step(1)], [step(2)])
    os.truncate(path, end - 3)
    with JournalWriter(path, HEADER) as journal:
        assert journal.dropped_bytes == end - 3 - whole
        journal.append([step(7)])
    assert [r.seq for r in read_journal(path).records] == [1, 7]
    assert (tmp_path / f"journal.cut-{whole}").stat().st_size == end - 3 - whole


def test_tailing_sees_each_record_once(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    records = run_records(rounds=6)
    with JournalWriter(path, HEADER) as journal:
        seen: list[Record] = []
        offset = 0
        for record in records:
            journal.append([record])
            contents = read_journal(path, offset)
            seen, offset = seen + contents.records, contents.offset
    assert seen == records


def test_reading_in_slices(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    big: list[Record | Input] = [step(3, reason="y" * 5000)]
    journal_of(path, [step(1)], [step(2)], big, [step(4)])
    seqs, offset = [], 0
    for _ in range(10):
        contents = read_journal(path, offset, limit_bytes=200)
        seqs += [r.seq for r in contents.records]
        offset = contents.offset
    assert seqs == [1, 2, 3, 4] and contents.dropped_bytes == 0


def test_mode_and_second_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with JournalWriter(path, HEADER):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(TapeError, match=f"process {os.getpid()};"):
            JournalWriter(path, HEADER)
    JournalWriter(path, HEADER).close()
    with pytest.raises(TapeError, match="run 'r', not of 'other'"):
        JournalWriter(path, {"run_id": "other"})


def test_a_full_disk_leaves_whole_frames_and_a_usable_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with JournalWriter(path, HEADER) as journal:
        whole = journal.append([step(1)])
        resource.setrlimit(resource.RLIMIT_FSIZE, (whole + 40, hard))
        try:
            for _ in range(2):
                with pytest.raises(StorageFull, match="free space there before more"):
                    journal.append([step(2, reason="z" * 100)])
                assert path.stat().st_size == whole == journal.offset
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        journal.append([step(3)])
    assert [r.seq for r in read_journal(path).records] == [1, 3]


def test_an_error_of_the_disk_is_storage_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes, offset: int) -> int:
        raise OSError(28, "No space left on device")

    with JournalWriter(tmp_path / "journal", HEADER) as journal:
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", full)
            with pytest.raises(StorageFull, match="No space left"):
                journal.append([step(1)])
        journal.append([step(2)])
    assert [r.seq for r in read_journal(tmp_path / "journal").records] == [2]


@pytest.mark.parametrize(
    "fields",
    [
        {"tokens": 2**63},
        {"digest": -1},
        {"peer": 2**31},
        {"step": 1.5},
        {"clock": (2**64,)},
        {"clock": (1,) * 5000},
        {"reason": 3},
        {"detail": {1: 2}},
        {"detail": {"x": object()}},
        {"detail": {"x": 2**70}},
        {"cause": (1, 2**63)},
    ],
)
def test_a_record_that_no_column_holds_is_refused_whole(tmp_path: Path, fields: dict[str, Any]) -> None:
    with JournalWriter(tmp_path / "journal", HEADER) as journal:
        with pytest.raises(TapeError):
            journal.append([step(1), step(2, **fields)])
        journal.append([step(3)])
    assert [r.seq for r in read_journal(tmp_path / "journal").records] == [3]


def test_numpy_numbers_are_taken(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "journal", HEADER) as journal:
        journal.append(
            [step(1, tokens=np.int64(5), value=np.float32(0.5), detail={"a": np.arange(2), "b": np.uint64(3)})]
        )
    record = read_journal(tmp_path / "journal").records[0]
    assert (record.tokens, record.value, record.detail) == (5, 0.5, {"a": [0, 1], "b": 3})


@pytest.mark.parametrize("data", [b"", b"short", b"\0" * 100, b"{'a': 1}" * 30])
def test_what_is_no_journal_is_refused_in_one_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "journal"
    path.write_bytes(data)
    for attempt in (read_journal, read_header):
        with pytest.raises(TapeError, match="no journal of this workbench") as caught:
            attempt(path)
        assert "\n" not in str(caught.value)
    with pytest.raises(TapeError, match="cannot be read"):
        read_journal(tmp_path / "missing")
    with pytest.raises(TapeError, match="was cut"):
        journal_of(tmp_path / "real", [step(1)])
        read_journal(tmp_path / "real", offset=10**6)


def test_a_run_without_records_has_a_tape(tmp_path: Path) -> None:
    JournalWriter(tmp_path / "journal", HEADER).close()
    tree = open_tape(tmp_path)
    assert tree.attrs["run_id"] == "r" and tree.wb.records() == [] and tree.wb.inputs() == []
