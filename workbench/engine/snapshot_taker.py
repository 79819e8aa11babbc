"""The syncer's hand in a snapshot: its own part is laid into a file by a thread, those of learners are named.

Writing to disk is another process's: the syncer loads nothing that could.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from workbench.algorithms.syncer_arithmetic import SyncerArithmetic
from workbench.engine.blocks import BlockWriter, Descriptor
from workbench.protocol.actions import KeepPart, TakeSnapshot, WriteSnapshot
from workbench.protocol.events import SnapshotWritten
from workbench.training.held_state import StateArrays
from workbench.training.snapshot_files import SYNCER, learner_part

PREFIX = "snapshot-"
"""Of the names of files that a snapshot is made of."""


class Taking:
    """What one snapshot is made of.

    Attributes
    ----------
    own : dict or None
        Where the syncer's part lies.
    rules : list of str
        Outer optimiser of each fragment.
    parts : dict of str to dict
        Where the learners' parts lie, by name.
    far : dict of str to array (nbytes,)
        Parts that came over the network.
    fault : str
        Why it cannot be, empty if it can.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self.number = folder, number
        self.own: dict[str, Any] | None = None
        self.rules: list[str] = []
        self.parts: dict[str, dict[str, Any]] = {}
        self.far: dict[str, np.ndarray] = {}
        self.fault = ""

    def _path(self, name: str) -> Path:
        return self._folder / f"{PREFIX}{self.number}-{name}"

    def lay(self, name: str, data: np.ndarray) -> dict[str, Any]:
        """Copy bytes (nbytes,) to where the writer finds them; no room: `OSError`."""
        writer = BlockWriter(self._path(name), 1, data.nbytes)
        return named(writer.path, writer.write(data, 0))

    def link(self, name: str, descriptor: Descriptor) -> bool:
        """Keep a learner's file under a name that stays when the learner dies; False if it is gone already."""
        path = self._path(name)
        try:
            os.link(self._folder / descriptor.file, path)
        except OSError:
            return False
        self.parts[name] = named(path, descriptor)
        return True

    def remove(self) -> None:
        """Nothing of it is left in memory."""
        for path in self._folder.glob(f"{PREFIX}{self.number}-*"):
            path.unlink(missing_ok=True)


class SnapshotTaker:
    """One snapshot at a time, as the machine orders it.

    Parameters
    ----------
    arithmetic : SyncerArithmetic
    wire : SyncerWire
    folder : Path
        Runtime folder.
    wake : callable
        Called from the thread when something is there to be taken.
    """

    def __init__(self, arithmetic: SyncerArithmetic, wire: Any, folder: Path, wake: Callable[[], None]) -> None:
        self._arithmetic, self._wire, self._folder, self._wake = arithmetic, wire, folder, wake
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._taking: Taking | None = None
        self._ready: deque[dict[str, Any]] = deque()
        self._failed: deque[SnapshotWritten | BaseException] = deque()
        for stale in folder.glob(f"{PREFIX}*"):  # of a syncer that was killed
            stale.unlink(missing_ok=True)

    # the machine's orders

    def take(self, order: TakeSnapshot) -> None:
        """Lay Theta and outer state of these versions, while merges write other slots."""
        taking = self._taking = Taking(self._folder, order.snapshot)
        self._run(lambda: self._lay_own(taking, order.versions))

    def keep(self, order: KeepPart) -> None:
        """A learner's part has come."""
        taking, name = self._taking, learner_part(order.learner)
        if taking is None:
            return
        near = self._wire.state_file(order.handle)
        if near is None or not taking.link(name, near):
            taking.far[name] = self._wire.payload(order.handle)

    def write(self, order: WriteSnapshot) -> None:
        """All parts are there: name them to whoever writes."""
        taking = self._taking
        if taking is not None:
            self._run(lambda: self._order(taking, order))

    def drop(self, number: int) -> None:
        """A snapshot is over, written or not; the next may have begun with the news of that."""
        if self._taking is not None and self._taking.number == number:
            self._taking = None
        self._run(Taking(self._folder, number).remove)

    # what comes of them

    def orders(self) -> list[dict[str, Any]]:
        """What whoever writes snapshots has to be told."""
        return [self._ready.popleft() for _ in range(len(self._ready))]

    def failed(self) -> list[SnapshotWritten]:
        """Snapshots that cannot be; raises what the thread has raised."""
        found = []
        while self._failed:
            failed = self._failed.popleft()
            if isinstance(failed, BaseException):
                raise failed
            found.append(failed)
        return found

    # the thread

    def _run(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="snapshot", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            try:
                self._jobs.get()()
            except BaseException as error:
                self._failed.append(error)
            self._wake()

    def _lay_own(self, taking: Taking, versions: list[int]) -> None:
        copied = self._arithmetic.copy_versions(versions)
        if copied is None:
            taking.fault = "a fragment was merged twice before it was copied"
            return
        thetas, outers = copied
        taking.rules = [outer.rule for outer in outers]
        arrays = [array for o in outers for array in (np.array([o.steps], np.int64), o.vectors)]
        try:
            taking.own = taking.lay(SYNCER, StateArrays(thetas, arrays, {}, {}).to_bytes())
        except OSError as error:
            taking.fault = _no_room(error)

    def _order(self, taking: Taking, order: WriteSnapshot) -> None:
        try:
            for name, data in taking.far.items():
                taking.parts[name] = taking.lay(name, data)
        except OSError as error:
            taking.fault = _no_room(error)
        if taking.fault or taking.own is None:
            self._failed.append(SnapshotWritten(order.snapshot, 0, taking.fault))
            return
        manifest = {**order.manifest, "outer": taking.rules}
        parts = {SYNCER: taking.own, **taking.parts}
        self._ready.append({"write_snapshot": order.snapshot, "manifest": manifest, "parts": parts})


def _no_room(error: OSError) -> str:
    return f"there is no room for it: {error.strerror or error}"


def named(path: Path, descriptor: Descriptor) -> dict[str, Any]:
    """Where bytes lie, as a table for another process of this machine."""
    return {
        "path": str(path),
        "slot": descriptor.slot,
        "generation": descriptor.generation,
        "nbytes": descriptor.nbytes,
    }
