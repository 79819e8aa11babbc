"""The recorder drains the journal into commits of the tape.

Every commit holds the journal's offset up to which it reaches, in the same transaction: a crash
between two commits loses nothing and doubles nothing.  All state can be read back from the tape.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import zarr

from workbench.tape import store
from workbench.tape.arrays import Item, group_metadata
from workbench.tape.checks import checked_arrays
from workbench.tape.errors import TapeError, first_line, reading
from workbench.tape.journal import JournalContents, read_header, read_journal
from workbench.tape.lock import FileLock
from workbench.tape.metadata import check_root, root_attributes
from workbench.tape.run_folder import RunFolder, open_run_folder
from workbench.tape.schema import GROUPS
from workbench.tape.tables import Tables

SLICE_BYTES = 8 << 20
"""Journal read for one commit [bytes]; bounds the memory of a long drain."""
COMPACT_COMMITS = 500
KEEP_S = 600.0
SHARE_MAX = 0.01
"""Commits between two compactions; younger commits stay for readers that are open; and the
share of the machine's cores that recording may take."""


def drain_interval_s(elapsed_s: float, cost_s: float = 0.0) -> float:
    """Seconds between two drains of a run that is ``elapsed_s`` old: 1 in the first hour, then 10.

    Longer where one drain costs ``cost_s`` of processor time: recording takes at most 1 % of the cores.
    """
    return max(1.0 if elapsed_s < 3600.0 else 10.0, cost_s / (SHARE_MAX * (os.cpu_count() or 1)))


class Recorder:
    """The one writer of a run's tape.

    Parameters
    ----------
    run_folder : path or RunFolder
        Its ``journal`` must exist; ``tape/`` is made if it does not.
    in_memory : bool
        Lay the tape into memory instead, from the journal's beginning; the folder is only read.

    Raises
    ------
    TapeError
        When another recorder lives (with its process id), the tape is newer than this code or damaged,
        or the journal cannot be read.
    """

    def __init__(self, run_folder: str | Path | RunFolder, *, in_memory: bool = False) -> None:
        self.folder = run_folder if isinstance(run_folder, RunFolder) else open_run_folder(run_folder)
        self._lock = None if in_memory else FileLock(self.folder.tape_lock, f"the tape of {self.folder.path}")
        try:
            self.header = read_header(self.folder.journal)
            self._commits, self._cost_s, self._titles = 0, 0.0, list[Item]()
            self._committed: deque[tuple[float, datetime]] = deque()
            self.repository = self._open(in_memory)
            self._load()
        except BaseException:
            self.release()
            raise

    def _open(self, in_memory: bool) -> Any:
        if in_memory:
            return self._create(None)
        if self.folder.tape.exists():
            return store.open_repository(self.folder.tape)
        fresh = self.folder.path / f"tape.new-{os.getpid()}"
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            self._create(fresh)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        fresh.rename(self.folder.tape)  # a tape folder that exists is a whole tape
        return store.open_repository(self.folder.tape)

    def _create(self, path: Path | None) -> Any:
        self.repository = store.create(path)
        self._tables, self.offset, self.closed = Tables(), 0, False
        paths = dict.fromkeys(group.where for group in GROUPS.values())
        self._titles = [(f"{p}/zarr.json", group_metadata({"long_name": GROUPS[p].title})) for p in paths]
        self._commit("new tape")
        return self.repository

    def _load(self) -> None:
        """Take up the state that the tape's newest commit holds."""
        with reading(self.folder.tape):
            root = zarr.open_group(store.read_store(self.repository), mode="r")
            attrs = check_root(dict(root.attrs), self.folder.tape)
            if attrs["run_id"] != self.header.get("run_id", ""):
                raise TapeError(
                    f"{self.folder.tape} is the tape of run {attrs['run_id']!r}, but the journal beside it is of "
                    f"{self.header.get('run_id')!r}; move one of them away"
                )
            self.offset, self.closed = int(attrs["journal_offset"]), bool(attrs["closed"])
            arrays = checked_arrays(dict(root.members(max_depth=1)), attrs["rows"], self.folder.tape)
            self._tables = Tables(attrs["words"], arrays)

    @property
    def events(self) -> int:
        """Events on the tape."""
        return self._tables.events

    def interval_s(self, elapsed_s: float) -> float:
        """Seconds to wait until the next drain of a run that is ``elapsed_s`` old (`drain_interval_s`)."""
        return drain_interval_s(elapsed_s, self._cost_s)

    def drain(self) -> int:
        """Commit what the journal has now beyond the tape; return how many events that were.

        Raises
        ------
        StorageFull
            When the disk is full; the tape stays at its last commit, and draining again goes on.
        TapeError
            When the store or the journal cannot be used.
        """
        before, cost, wall = self.events, time.process_time(), time.perf_counter()
        with reading(self.folder.journal):
            end = self.folder.journal.stat().st_size
        while self.offset < end:  # what is appended meanwhile waits: a drain that ran after it would never end
            contents = read_journal(self.folder.journal, self.offset, SLICE_BYTES)
            if contents.offset == self.offset:
                break
            self._or_anew(partial(self._transact, contents))
        if self._commits >= COMPACT_COMMITS:
            self._compact()
            self._commits = 0
        if self.events > before:
            # the process may do other work beside, and may have waited: the smaller of the two is ours
            cost_s = min(time.process_time() - cost, time.perf_counter() - wall)
            self._cost_s += 0.125 * (cost_s - self._cost_s) if self._cost_s else cost_s
        return self.events - before

    def _or_anew(self, write: Callable[[], None]) -> bool:
        """Write, or lay the tape anew from the journal where no commit can follow the last; whether it begins anew."""
        try:
            write()
            return False
        except store.ClockStepped:
            if self._lock is None:
                raise
            shutil.rmtree(self.folder.tape)
            self._committed.clear()
            self.repository = self._open(in_memory=False)
            self._load()
            return True

    def _transact(self, contents: JournalContents) -> None:
        """Enter one slice of the journal and commit it, or leave everything as it was."""
        try:
            self._tables.enter(contents)
            self.offset, self.closed = contents.offset, False
            self._commit(f"events to {self.events}")
        except BaseException as error:
            self._load()
            if isinstance(error, ArithmeticError | TypeError | ValueError) and not isinstance(error, TapeError):
                raise TapeError(
                    f"{self.folder.journal} holds a record near byte {self.offset} that the tape cannot hold: "
                    f"{first_line(error)}"
                ) from error
            raise

    def _commit(self, message: str) -> None:
        attrs = root_attributes(
            self.header, words=self._tables.words.words, journal_offset=self.offset, rows=self._tables.rows,
            closed=self.closed,
        )  # fmt: skip
        metadata = [("zarr.json", group_metadata(attrs)), *self._tables.metadata()]
        store.commit(self.repository, [*self._titles, *metadata], self._tables.chunks(), message)
        self._tables.committed()
        self._titles = []
        self._commits += 1
        self._committed.append((time.monotonic(), store.now()))

    def _compact(self) -> None:
        """Drop commits of long ago: by this process's own clock, since somebody may set that of the machine."""
        long_ago, before = time.monotonic() - KEEP_S, None
        while self._committed and self._committed[0][0] <= long_ago:
            before = self._committed.popleft()[1]
        if before is not None:
            store.compact(self.repository, before)

    def close(self) -> None:
        """Drain what is left, mark the tape closed, compact it and let go of it; then it may not be used.

        Compaction leaves one commit with few, larger chunks; views that were opened lazily before it
        must be opened again.
        """
        if self.closed and self._lock is None:
            return
        try:
            if self._or_anew(self._finish):
                self._finish()
        finally:
            self.release()

    def _finish(self) -> None:
        self.drain()
        if not self.closed:
            self.closed = True
            self._commit("closed")
        store.rechunk(self.repository, self._tables.words.words)
        store.compact(self.repository, store.now())

    def release(self) -> None:
        """Let go of the tape without draining or closing it."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.release()


def rebuild_tape(run_folder: str | Path) -> int:
    """Set a damaged tape aside and lay a new one from the whole journal; return its number of events.

    Raises
    ------
    TapeError
        When the tape is being written, or the journal cannot be read.
    """
    folder = open_run_folder(run_folder)
    read_header(folder.journal)
    with FileLock(folder.tape_lock, f"the tape of {folder.path}"):
        if folder.tape.exists():
            number = 1
            while (aside := folder.path / f"tape.damaged-{number}").exists():
                number += 1
            folder.tape.rename(aside)
    with Recorder(folder) as recorder:
        recorder.drain()
    return recorder.events
