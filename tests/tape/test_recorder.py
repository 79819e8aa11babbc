"""The recorder: nothing lost, nothing doubled, whatever the journal holds and whenever it dies."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tape.examples import run_records, snapshot_records
from tests.tape.strategies import inputs, journals
from workbench.protocol.records import Kind, Record
from workbench.tape import Input, JournalWriter, Recorder, StorageFull, TapeError, open_tape, rebuild_tape, store
from workbench.tape import recorder as recorder_module
from workbench.tape.schema import DROPPED, EVENTS, FATES, GROUPS, MERGED


def written(folder: Path, *batches: Sequence[Record | Input]) -> Path:
    """A run folder with a journal of these batches and a drained tape."""
    folder.mkdir(exist_ok=True)
    with JournalWriter(folder / "journal", {"run_id": "r"}) as journal:
        recorder = Recorder(folder)
        for batch in batches:
            journal.append(batch)
            recorder.drain()
        recorder.close()
    return folder


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(journals(12), min_size=1, max_size=2), st.lists(inputs, max_size=4))
def test_any_journal_comes_back_from_the_tape(batches: list[list[Record]], taken: list[Input]) -> None:
    with tempfile.TemporaryDirectory() as name:
        tree = open_tape(written(Path(name) / "run", *batches, taken))
        assert tree.wb.records() == [record for batch in batches for record in batch]
        assert tree.wb.inputs() == taken


def test_rows_of_a_small_run(tmp_path: Path) -> None:
    records = run_records(rounds=3)
    tree = open_tape(written(tmp_path / "run", list(records[:17]), list(records[17:])))
    assert tree.wb.records() == records
    assert tree["details"].sizes["detail"] < len(records) / 4, "what tables hold is not stored twice"
    contributions = tree["contributions"].dataset
    assert contributions["fate"].values.tolist() == [MERGED, MERGED, MERGED, DROPPED, MERGED, MERGED]
    assert tree.wb.reasons(contributions)[3] == "late"
    assert tree["merges"].dataset["included"].values.tolist() == [[1, 1], [1, 0], [1, 1]]
    assert (tree["merges"].dataset["commit_ns"].values > 0).all() and (
        tree["merges"].dataset["send_ns"].values > 0
    ).all()
    lives = tree["incarnations"].dataset
    assert lives["process"].values.tolist()[:3] == [0, 3, 1]
    assert lives["pid"].values[1] == 100 and lives["why_ended"].values[1] == "exit"
    assert tree["settings"].dataset["key"].values.tolist() == ["grace_s", "merge"]
    assert tree["settings"].dataset["first_round"].values.tolist() == [0, 0]


def test_cause_is_the_event_of_the_send(tmp_path: Path) -> None:
    records = run_records()
    events = open_tape(written(tmp_path / "run", list(records[:20]), list(records[20:])))["events"].dataset
    for row, record in enumerate(records):
        cause = int(events["cause"][row])
        assert (cause < 0) == (record.cause is None)
        if cause >= 0:
            assert cause < row and (records[cause].process, records[cause].seq) == record.cause


def test_every_column_is_filled_by_some_kind(tmp_path: Path) -> None:
    tree = open_tape(
        written(tmp_path / "run", [*run_records(epoch=1), *snapshot_records(epoch=1), Input(0, 0, 4, b"x")])
    )
    unfilled = []
    for group in GROUPS.values():
        for variable in group.variables:
            values = tree[group.where].dataset[variable.name].values
            fill = variable.fill
            filled = ~np.isnan(values) if values.dtype.kind == "f" and fill != fill else values != fill
            if not filled.any():
                unfilled.append(f"{group.where}/{variable.name}")
    assert unfilled == []


def test_snapshots_have_a_row_for_each_process_and_their_fate(tmp_path: Path) -> None:
    rows = open_tape(written(tmp_path / "run", snapshot_records()))["snapshots"].dataset
    columns = ("snapshot", "learner", "step", "seq", "digest", "bytes", "fate")
    found = list(zip(*(rows[name].values.tolist() for name in columns), strict=True))
    assert found == [(1, -1, -1, 1, 8, -1, 1), (2, -1, -1, 2, 0, -1, 2), (1, 0, 7, 1, 9, 64, 1)]
    assert rows["versions"].values[:, :2].tolist() == [[3, 2]] * 3


def test_equal_time_stamps_keep_the_journal_order(tmp_path: Path) -> None:
    """REPORTED D7, for the tape; for a replay see `tests.replay.test_exact`."""
    records = [Record(Kind.SELF_STOPPED, process=p, incarnation=0, seq=s, time_ns=7) for s in (1, 2) for p in (3, 0, 5)]
    tree = open_tape(written(tmp_path / "run", records))
    assert [(r.process, r.seq) for r in tree.wb.records()] == [(r.process, r.seq) for r in records]
    assert set(tree["events"].dataset["time_ns"].values.tolist()) == {7}


def test_process_axis_grows_and_labels_keep_their_meaning(tmp_path: Path) -> None:
    def step(process: int, seq: int, width: int) -> Record:
        clock = tuple(seq if i == process else 0 for i in range(width))
        return Record(Kind.STEP_ENDED, process=process, incarnation=0, seq=seq, time_ns=1, clock=clock)

    first = [step(p, 1, 6) for p in (3, 4, 5)]
    second = [step(p, 2, 30) for p in (5, 3, 29)]
    tree = open_tape(written(tmp_path / "run", first, second))
    clock = tree["events"].dataset["clock"].values
    assert clock.shape == (6, 30) and (clock[:3, 6:] == -1).all()
    for row, process in enumerate((3, 4, 5, 5, 3, 29)):
        assert clock[row, process] == (1 if row < 3 else 2)
    assert tree.wb.labels[:4] == ["syncer", "supervisor", "evaluator", "L0"] and tree.wb.labels[29] == "L26"
    assert tree.wb.records() == first + second


def test_learner_order_does_not_matter_for_included(tmp_path: Path) -> None:
    """REPORTED X6: values stay with their label."""

    def merged(seq: int, learners: list[int]) -> Record:
        detail = {"learners": learners, "weights": [float(m) for m in learners]}
        return Record(Kind.MERGED, 0, 0, seq, seq, round=seq, fragment=0, version=seq, detail=detail)

    records = [merged(1, [0, 1, 2]), merged(2, [2, 0, 1]), merged(3, [2])]
    tree = open_tape(written(tmp_path / "run", records))
    dense = tree.wb.merge_learner()
    assert dense["included"].values.tolist() == [[True] * 3, [True] * 3, [False, False, True]]
    assert dense["weight"].values[:2].tolist() == [[0.0, 1.0, 2.0]] * 2
    assert tree.wb.records() == records


def test_kinds_without_a_column_leave_it_missing_and_all_columns_as_long(tmp_path: Path) -> None:
    """REPORTED X2: events of a kind that fills nothing beside the common columns, in commits of their own."""
    full = run_records(rounds=2)
    bare = [Record(Kind.SELF_STOPPED, 0, 0, seq, 10**9 + seq) for seq in range(1000, 1004)]
    tree = open_tape(written(tmp_path / "run", bare[:2], full, bare[2:]))
    events = tree["events"].dataset
    assert {name: variable.sizes["event"] for name, variable in events.items()} == dict.fromkeys(
        events.data_vars, len(full) + 4
    )
    for name in ("peer", "fragment", "round", "version", "step", "setting", "cause"):
        assert events[name].values[[0, 1, -2, -1]].tolist() == [-1] * 4, name
    assert tree.wb.records() == [*bare[:2], *full, *bare[2:]]


def test_a_recorder_that_died_is_continued_by_the_next(tmp_path: Path) -> None:
    records = run_records(rounds=6)
    with JournalWriter(tmp_path / "journal", {"run_id": "r"}) as journal:
        for start in range(0, len(records), 7):
            journal.append(records[start : start + 7])
            recorder = Recorder(tmp_path)
            recorder.drain()
            recorder.release()  # as a SIGKILL would: no close
    whole = open_tape(tmp_path)
    once = open_tape(written(tmp_path / "once", records))
    assert whole.wb.records() == records
    for group in GROUPS.values():
        for variable in group.variables:
            if group.where not in ("details", "inputs"):
                np.testing.assert_array_equal(whole[group.where][variable.name], once[group.where][variable.name])


def test_a_failed_commit_changes_nothing_and_draining_again_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = run_records()
    with JournalWriter(tmp_path / "journal", {"run_id": "r"}) as journal, Recorder(tmp_path) as recorder:
        journal.append(records[:9])
        recorder.drain()
        journal.append(records[9:])
        with monkeypatch.context() as patch:

            async def full(store: object, items: object) -> None:
                raise OSError(28, "No space left on device")

            patch.setattr(store, "_put", full)
            with pytest.raises(StorageFull, match="free space"):
                recorder.drain()
        assert recorder.events == 9
        assert recorder.drain() == len(records) - 9
    assert open_tape(tmp_path).wb.records() == records


def test_a_drain_ends_although_the_journal_grows_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a recorder beside a writer that is faster than a commit never rests, and takes a whole core."""
    records, commit = run_records(), store.commit
    with JournalWriter(tmp_path / "journal", {"run_id": "r"}) as journal, Recorder(tmp_path) as recorder:
        journal.append(records[:5])
        later = iter(records[5:9])

        def growing(*arguments: Any) -> None:
            commit(*arguments)
            journal.append([record for record in [next(later, None)] if record is not None])

        monkeypatch.setattr(store, "commit", growing)
        assert recorder.drain() == 5
        assert recorder.drain() == 1


def test_second_recorder_is_refused_with_the_holders_pid(tmp_path: Path) -> None:
    """REPORTED X11."""
    JournalWriter(tmp_path / "journal", {"run_id": "r"}).close()
    first = Recorder(tmp_path)
    with pytest.raises(TapeError, match=f"process {os.getpid()};"):
        Recorder(tmp_path)
    first.release()
    Recorder(tmp_path).release()


def test_many_chunks_survive_rechunking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for group in (EVENTS, GROUPS["steps"], GROUPS["contributions"], GROUPS["details"]):
        monkeypatch.setitem(group.__dict__, "chunk", 16)
    monkeypatch.setattr(recorder_module, "COMPACT_COMMITS", 5)
    records = run_records(rounds=20)
    batches = [list(records[i : i + 11]) for i in range(0, len(records), 11)]
    tree = open_tape(written(tmp_path / "run", *batches))
    assert tree.wb.records() == records
    assert tree["events"].sizes["event"] > 16 * 10
    files = sum(path.is_file() for path in (tmp_path / "run" / "tape").rglob("*"))
    assert files < 400, "compaction leaves one commit"


def test_a_clock_that_is_set_forward_takes_no_commit_from_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "COMPACT_COMMITS", 1)
    records, today = run_records(), store.now
    with JournalWriter(tmp_path / "journal", {"run_id": "r"}) as journal, Recorder(tmp_path) as recorder:

        def commits(more: list[Record]) -> int:
            journal.append(more)
            recorder.drain()
            return len(list(recorder.repository.ancestry(branch=store.BRANCH)))

        before = commits(records[:10])
        monkeypatch.setattr(store, "now", lambda: today() + timedelta(days=1))
        assert commits(records[10:20]) == before + 1
        assert commits(records[20:30]) == before + 2
        monkeypatch.setattr(recorder_module, "KEEP_S", 0.0)
        assert commits(records[30:40]) < before + 2, "what is old by the recorder's own clock goes"


def test_rebuilding_from_the_journal(tmp_path: Path) -> None:
    records = run_records()
    folder = written(tmp_path / "run", records)
    for path in (folder / "tape").rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    with pytest.raises(TapeError):
        open_tape(folder)
    assert rebuild_tape(folder) == len(records)
    assert open_tape(folder).wb.records() == records
    assert (folder / "tape.damaged-1").exists()


def test_fates_without_a_merge(tmp_path: Path) -> None:
    def arrived(seq: int, round_: int) -> Record:
        return Record(Kind.FRAGMENT_ARRIVED, 0, 0, seq, seq, peer=3, round=round_, fragment=0, step=1)

    records = [arrived(i + 1, i) for i in range(4)]
    for seq, (kind, round_) in enumerate(
        ((Kind.ROUND_SKIPPED, 0), (Kind.ROUND_ABORTED, 1), (Kind.ROUND_RESTARTED, 2)), start=5
    ):
        records.append(Record(kind, 0, 0, seq, seq, round=round_, fragment=0, reason="nonfinite"))
    tree = open_tape(written(tmp_path / "run", records))
    assert [FATES[f] for f in tree["contributions"].dataset["fate"].values] == [
        "skipped",
        "aborted",
        "forgotten",
        "open",
    ]
    assert tree.wb.reasons(tree["contributions"].dataset)[0] == "nonfinite"


def test_drains_come_once_a_second_and_cost_a_hundredth_of_the_machine() -> None:
    cores = os.cpu_count() or 1
    assert recorder_module.drain_interval_s(10.0) == 1.0 and recorder_module.drain_interval_s(4000.0) == 10.0
    assert recorder_module.drain_interval_s(10.0, cost_s=0.5 * cores) == pytest.approx(50.0)
