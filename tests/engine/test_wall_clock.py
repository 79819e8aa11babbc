"""The wall clock of the machine may jump: it decides nothing in a run, and stands in no time of its tape."""

from __future__ import annotations

import ast
import os
import shutil
import struct
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.engine.real_runs import GUARD_S, of_kind, records_of, tiny, until
from workbench.engine.launch import launch
from workbench.protocol.records import Kind
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.tape import TapeError, open_tape, store

HOUR_S = 3600
PACKAGE = Path(workbench.__file__).parent
WALL = {"time.time", "time.time_ns", "time.ctime", "time.localtime", "time.gmtime", "time.strftime", "datetime.now",
        "datetime.utcnow", "datetime.today", "date.today", "time.clock_gettime", "time.CLOCK_REALTIME"}  # fmt: skip
READERS = {
    "engine/joiner.py": "a process number that rises, above what the syncer knows anyhow",
    "engine/runtime_folder.py": "whether a folder without an owner's name was left long ago",
    "pages/clicks.py": "when a click was made, for whoever reads it",
    "pages/run_list.py": "how long ago a run was written to, on the list of runs",
    "tape/store.py": "the time that a commit bears, compared with those of other commits",
}
"""Modules that read the wall clock, and what for: no other may, and none of them for what decides in a run."""


def wall_readings(path: Path) -> set[str]:
    """Readings of the wall clock in a module, as they are written."""
    found = {ast.unparse(node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    return found & WALL


def test_who_reads_the_wall_clock_is_known() -> None:
    found = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if wall_readings(path)}
    assert found == set(READERS)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "time":
                names = {f"time.{one.name}" for one in node.names}
                assert not names & WALL, f"{path} hides {names} behind a name of its own"


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """File of the seconds by which the wall clock of processes that start from now on is off."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler: on Debian apt install gcc")
    library, file = tmp_path / "wall_clock.so", tmp_path / "seconds"
    source = Path(__file__).with_name("wall_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, timeout=GUARD_S)
    file.write_bytes(struct.pack("<q", 0))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("WALL_CLOCK_FILE", str(file))
    monkeypatch.setenv("LD_PRELOAD", str(library))
    return file


def set_clock(clock: Path, seconds: int) -> None:
    """Set the wall clock by so many seconds, in all processes at once."""
    with clock.open("r+b") as file:
        os.pwrite(file.fileno(), struct.pack("<q", seconds), 0)


@contextmanager
def held(folder: Path) -> Iterator[int]:
    """An open descriptor of a folder: no later folder gets its inode, even if it is removed meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def reaches(run: Path, offset: int) -> bool:
    """Whether the tape on disk reaches so far into the journal [bytes]; not while it is laid anew."""
    tape = run / "tape"
    try:
        return int(store.root_attributes(store.open_repository(tape), tape)["journal_offset"]) >= offset
    except TapeError:
        return False


def test_a_run_goes_on_through_a_clock_that_is_set_back_and_forward(clock: Path, tmp_path: Path) -> None:
    path, began = tmp_path / "run", time.monotonic()
    tapes: list[os.stat_result] = []
    slowly: dict[str, Any] = {"inner.batch": 128, "heartbeat_limit_s": 60.0}  # a busy machine is no silent learner
    with launch(tiny(2, snapshot_every=20, **slowly), path) as run, ExitStack() as stack:
        for seconds in (0, -HOUR_S, 24 * HOUR_S):
            set_clock(clock, seconds)
            run.wait(rounds=run.status()["merges"] + 40, timeout_s=GUARD_S)
            size = (path / "journal").stat().st_size
            until(partial(reaches, path, size), "the recorder has laid onto the tape what was journalled")
            tapes.append(os.fstat(stack.enter_context(held(path / "tape"))))
        assert run.status()["phase"] == "running"
    took = time.monotonic() - began
    assert run.outcome() == (0, "")
    records = records_of(path)
    assert not [r for kind in (Kind.QUORUM_LOST, Kind.SNAPSHOT_ABANDONED) for r in of_kind(records, kind)]
    assert all(r.value < HOUR_S / 10 for r in of_kind(records, Kind.SELF_STOPPED)), "as long as it really stood still"
    assert {r.reason for r in of_kind(records, Kind.LEARNER_LOST)} <= {"left", "ended"}
    assert {r.reason for r in of_kind(records, Kind.PROCESS_ENDED)} == {"exit 0"}
    times = defaultdict(list)
    for record in records:
        times[record.process].append(record.time_ns)
    assert all(a <= b for of_one in times.values() for a, b in pairwise(of_one)), "times of a process never go back"
    assert min(r.time_ns for r in records) >= 0 and max(r.time_ns for r in records) < took * 1e9
    assert not os.path.samestat(tapes[0], tapes[1]), "set back, no commit can follow the last: laid anew"
    assert os.path.samestat(tapes[1], tapes[2]), "set forward, commits follow the last"
    tape = open_tape(path)
    assert tape.wb.closed and tape["events"].sizes["event"] == len(records)
    assert tape.wb.records() == records
    assert replay(path).bit_exact
    assert rerun_machines(path).equal
