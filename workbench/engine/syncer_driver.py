"""The syncer's machine on real time: sockets, journal, merges and mapped slots; no protocol logic."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from workbench.algorithms import orders
from workbench.algorithms.syncer_arithmetic import SyncerArithmetic
from workbench.engine.link_faults import LinkFilter
from workbench.engine.merge_worker import MergeWorker
from workbench.engine.snapshot_taker import SnapshotTaker
from workbench.engine.syncer_status import StatusBook
from workbench.engine.timers import wait_ms
from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol.acting import TO_SYNCER
from workbench.protocol.messages import Fragment, Update
from workbench.protocol.records import SYNCER, Record
from workbench.protocol.syncer import SyncerMachine
from workbench.tape.errors import StorageFull
from workbench.tape.journal import Input, JournalWriter

STORAGE_RETRY_S = 0.5
POLL_MAX_MS = 250

_encode = msgspec.msgpack.Encoder().encode


class RunLost(RuntimeError):
    """The run cannot go on."""


class SyncerDriver:
    """Tells the machine what happened and does what it returns, in order.

    Parameters
    ----------
    machine : SyncerMachine
    wire : SyncerWire
    arithmetic : SyncerArithmetic
    journal : JournalWriter
    book : StatusBook
    origin_ns : int
        Monotonic time at which the run began.
    seed : int
    no_room : callable
        Called with one line while the journal cannot be written; raises `RunLost` if the run shall end.
    runtime : Path
        Folder for what a snapshot is made of.

    Attributes
    ----------
    links : LinkFilter
        What faults of links do to what comes in.
    finished : str
        Why the run is over, empty while it goes on.
    committed : list of (fragment, version)
        Commits since they were last taken.
    heard : callable or None
        Takes records that are in the journal now.
    """

    def __init__(
        self,
        machine: SyncerMachine,
        wire: Any,
        arithmetic: SyncerArithmetic,
        journal: JournalWriter,
        book: StatusBook,
        origin_ns: int,
        seed: int,
        no_room: Callable[[str], None],
        runtime: Path,
    ) -> None:
        self.machine, self.wire, self.arithmetic, self.journal, self.book = machine, wire, arithmetic, journal, book
        self.origin_ns, self.no_room = origin_ns, no_room
        self.links = LinkFilter(TO_SYNCER, wire)
        self.worker = MergeWorker(arithmetic, seed, wire.wake)
        self.snapshots = SnapshotTaker(arithmetic, wire, runtime, wire.wake)
        self.arrived: dict[int, orders.Arrived] = {}
        self.events: deque[Any] = deque()
        self.inputs: list[Input] = []
        self.finished = ""
        self.committed: list[tuple[int, int]] = []
        self.heard: Callable[[list[Record]], None] | None = None

    def now(self) -> int:
        """Time since the run began [ns]."""
        return time.monotonic_ns() - self.origin_ns

    def begin(
        self,
        reason: str,
        uncommitted: list[tuple[int, int, int]],
        cut: dict[str, Any] | None = None,
        aborted: Sequence[tuple[int, int]] = (),
    ) -> None:
        """First actions of this process."""
        self._do_all(self.machine.start(self.now(), reason, uncommitted, cut, aborted))
        self._drain()

    def turn(self, most_ms: float = POLL_MAX_MS) -> None:
        """Wait until something happens or is due, at most ``most_ms``, and let it happen."""
        most = math.ceil(min(most_ms, POLL_MAX_MS))
        came = self.wire.poll(wait_ms(self.now(), most, self.machine.wake_at, self.links.next_at))
        for connection, message in self.links.passing(self.now(), came):
            self.give(self._received(connection, message))
        for connection in self.wire.closed():
            self.give(ev.Disconnected(connection))
        for connection, fragment, version in self.wire.handed():
            self.give(ev.Handed(connection, fragment, version))
        for done in self.worker.take():
            self.give(done)
        for gone in self.snapshots.failed():
            self.give(gone)
        wake = self.machine.wake_at
        if 0 <= wake <= self.now():
            self.give(ev.Woken())

    def give(self, event: Any) -> None:
        """Let the machine take an input, and those that follow from it in this process."""
        self.events.append(event)
        self._drain()

    def _drain(self) -> None:
        while self.events:
            event = self.events.popleft()
            now = self.now()
            self.inputs.append(Input(SYNCER, self.machine.state.incarnation, now, _encode(event)))
            self._do_all(self.machine.handle(now, event))
            self._journal_inputs()

    def _received(self, connection: int, message: Any) -> ev.Received:
        """Facts that the machine cannot see: finite, fitting, and the norm of a payload."""
        if not isinstance(message, Fragment):
            return ev.Received(connection, message)
        if message.handle < 0:  # the wire found a payload of a wrong size, or none
            return ev.Received(connection, message, True, False, 0.0)
        payload = self.wire.payload(message.handle)
        found = orders.look(
            self.arithmetic, message.fragment, payload, message.codec, message.base_version, message.digest
        )
        if found.arrived is not None:
            self.arrived[message.handle] = found.arrived
        return ev.Received(connection, message, found.finite, found.fits, found.norm)

    def _do_all(self, todo: list[act.Action]) -> None:
        for action in todo:
            self._do(action)

    def _do(self, action: Any) -> None:
        kind = type(action)
        if kind is act.Append:
            self._journal(action.records)
        elif kind is act.Send:
            self._journal_inputs()
            self._send(action)
        elif kind is act.Merge:
            self.worker.put(action, [self.arrived[handle] for handle in action.handles])
        elif kind is act.Commit:
            self.arithmetic.commit(action.fragment, action.version)
            self.committed.append((action.fragment, action.version))
            self.events.append(ev.CommitDone(action.round, action.fragment, action.version))
        elif kind is act.TakeSnapshot:
            self.snapshots.take(action)
        elif kind is act.KeepPart:
            self.snapshots.keep(action)
        elif kind is act.WriteSnapshot:
            self.snapshots.write(action)
        elif kind is act.DropSnapshot:
            self.snapshots.drop(action.snapshot)
        elif kind is act.Release:
            self.arrived.pop(action.handle, None)
            self.wire.release(action.handle)
        elif kind is act.Finish:
            self.finished = action.reason
        elif kind is act.Fail:
            self._journal_inputs()
            raise RunLost(action.reason)

    def _send(self, action: act.Send) -> None:
        message = action.message
        if not isinstance(message, Update):
            self.wire.send(action.connection, action.channel, message)
            return
        theta = self.arithmetic.encode_update(message.fragment)
        if not self.wire.send(action.connection, action.channel, message, theta):
            # a link that takes nothing is gone: the learner comes back on another
            self.wire.disconnect(action.connection)
            self.events.append(ev.Disconnected(action.connection))

    def _journal(self, records: list[Record]) -> None:
        """Records, behind the input that they follow from, in one write; waits while there is no room."""
        items: list[Record | Input] = [*self.inputs, *records]
        self.inputs = []
        while True:
            try:
                self.journal.append(items)
                break
            except StorageFull as error:
                self.book.storage_full = str(error)
                self.no_room(str(error))
                time.sleep(STORAGE_RETRY_S)
        self.book.storage_full = ""
        self.book.note(records)
        if self.heard is not None:
            self.heard(records)

    def _journal_inputs(self) -> None:
        if self.inputs:
            self._journal([])

    def close(self) -> None:
        """End the merging thread, release the journal."""
        self.worker.close()
        self.journal.close()
