"""Speed of the tape: journal, recorder, and opening a tape of a million events.

Run as ``python -m tests.benchmarks.bench_tape [EVENTS]``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tests.tape.examples import run_records
from workbench.protocol.records import Record
from workbench.tape import JournalWriter, Recorder, open_tape, read_journal

BATCH = 100


class Row(NamedTuple):
    """One measured figure; ``budget`` is None where none is set, and then ``met`` is True."""

    name: str
    value: float
    unit: str
    budget: float | None
    met: bool


def _row(name: str, value: float, unit: str, budget: float | None = None) -> Row:
    return Row(name, value, unit, budget, budget is None or value <= budget)


def _lap(records: list[Record], lap: int) -> list[Record]:
    """The same records once more: their numbers, clocks and causes go on from those of the lap before."""
    counts = {record.process: record.seq for record in records}
    width = max(counts) + 1

    def later(process: int, seq: int) -> int:
        return seq + lap * counts.get(process, 0)

    def clock(record: Record) -> tuple[int, ...]:
        known = (*record.clock, *[0] * (width - len(record.clock)))
        return tuple(later(process, seq) for process, seq in enumerate(known))

    return [
        msgspec.structs.replace(
            record,
            seq=later(record.process, record.seq),
            clock=clock(record),
            cause=None if record.cause is None else (record.cause[0], later(*record.cause)),
        )
        for record in records
    ]


def _write(path: Path, records: list[Record], events: int) -> float:
    """Journal ``events`` records in batches; return the seconds that appending took."""
    spent = 0.0
    laps: list[Record] = []
    with JournalWriter(path, {"run_id": "bench"}) as journal:
        for start in range(0, events, BATCH):
            lap, at = divmod(start, len(records))
            laps = laps if at else _lap(records, lap)
            batch = laps[at : at + BATCH]
            begin = time.perf_counter()
            journal.append(batch)
            spent += time.perf_counter() - begin
    return spent


def _commit_cost(folder: Path, records: list[Record]) -> tuple[float, float]:
    """Median processor and wall seconds of one drain of a second's worth of events."""
    costs = []
    with JournalWriter(folder / "journal", {"run_id": "bench"}) as journal, Recorder(folder) as recorder:
        for i in range(12):
            journal.append(records[i * BATCH : (i + 1) * BATCH])
            cpu, wall = time.process_time(), time.perf_counter()
            recorder.drain()
            costs.append((time.process_time() - cpu, time.perf_counter() - wall))
    cpu_s, wall_s = np.median(np.array(costs[2:]), axis=0).tolist()
    return cpu_s, wall_s


def _staleness(tree: Any) -> Any:
    """The table that the budget speaks of: version merged into - 1 - base version, (merge x learner)."""
    dense = tree.wb.merge_learner()
    return dense["version"] - 1 - dense["base_version"].where(dense["included"])


def _causes(tree: Any, events: int) -> tuple[float, float]:
    """Seconds to build the causal index, and of one answer of each kind, the mean over events of the whole tape."""
    begin = time.perf_counter()
    tree.wb.before(0, 1)
    built = time.perf_counter()
    asked = np.linspace(0, events - 1, 50).astype(int).tolist()
    for event in asked:
        for answer in (tree.wb.past, tree.wb.future, tree.wb.concurrent, tree.wb.direct_causes, tree.wb.direct_effects):
            answer(event)
        tree.wb.cut(event=event)
        earliest = tree.wb.past(event).first
        if earliest >= 0:
            tree.wb.path(earliest, event)
    return built - begin, (time.perf_counter() - built) / len(asked) / 8


def _scrub(tree: Any, events: int) -> tuple[float, float, float]:
    """Seconds of the first moment, of its ledger, and of the slowest of 50 moments with theirs after that."""
    begin = time.perf_counter()
    first = tree.wb.at(0)
    built = time.perf_counter()
    _ = first.ledger
    booked = time.perf_counter()
    slowest = 0.0
    for event in np.linspace(0, events - 1, 50).astype(int).tolist():
        start = time.perf_counter()
        _ = tree.wb.at(event).ledger
        slowest = max(slowest, time.perf_counter() - start)
    return built - begin, booked - built, slowest


def run(events: int = 1_000_000) -> list[Row]:
    """Measure everything on ``events`` events; return the figures."""
    records = run_records(rounds=2000, learners=4, fragments=12)
    records = records[: len(records) // BATCH * BATCH]
    with tempfile.TemporaryDirectory() as name:
        folder, small = Path(name) / "run", Path(name) / "small"
        folder.mkdir()
        small.mkdir()
        cpu_s, wall_s = _commit_cost(small, records)
        append_s = _write(folder / "journal", records, events)
        begin = time.perf_counter()
        read_journal(folder / "journal")
        read_s = time.perf_counter() - begin
        begin = time.perf_counter()
        recorder = Recorder(folder)
        recorder.drain()
        drain_s = time.perf_counter() - begin
        recorder.close()
        close_s = time.perf_counter() - begin - drain_s
        begin = time.perf_counter()
        tree = open_tape(folder)
        open_s = time.perf_counter() - begin
        _staleness(tree).load()
        table_s = time.perf_counter() - begin
        index_s, answer_s = _causes(tree, events)
        scrub_index_s, ledger_s, scrub_s = _scrub(tree, events)
        files = [path for path in (folder / "tape").rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
    return [
        _row("journal_append", events / append_s, "records/s"),
        _row("journal_read", events / read_s, "records/s"),
        _row("recorder_drain", events / drain_s, "events/s"),
        _row("recorder_close", close_s, "s"),
        _row("commit_cpu", 1e3 * cpu_s, "ms"),
        _row("commit_wall", 1e3 * wall_s, "ms"),
        _row(f"open_{events}_events", open_s, "s", 2.0),
        _row("open_and_staleness_table", table_s, "s", 2.0),
        _row("scrub_first_moment", scrub_index_s, "s"),
        _row("scrub_first_ledger", ledger_s, "s"),
        _row("scrub_to_an_event_slowest_of_50", 1e3 * scrub_s, "ms", 50.0),
        _row("causal_index_built", index_s, "s", 2.0),
        _row("causal_answer", 1e3 * answer_s, "ms", 5.0),
        _row("tape_size", size / events, "bytes/event"),
        _row("tape_files", len(files), "files"),
    ]


def main(arguments: list[str]) -> int:
    """Print the figures; exit 1 if a budget is missed."""
    rows = run(int(arguments[0]) if arguments else 1_000_000)
    for row in rows:
        budget = "" if row.budget is None else f"   budget {row.budget:g}: {'met' if row.met else 'MISSED'}"
        print(f"{row.name:32} {row.value:14,.2f} {row.unit}{budget}")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
