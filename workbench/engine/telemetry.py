"""Telemetry: what happens in a run, pushed to whoever wants to see it, and never waited for.

The syncer sends the records as they are journalled, in batches, and its status four times a second, over a ZeroMQ
XPUB socket in the runtime folder (0700).  Every subscriber has a bounded queue; what does not fit into it is dropped
for that subscriber alone.  While nobody subscribes nothing is collected or encoded.  A batch says how many records
of the run came before it, so that whoever missed some knows how many, across a restart of the syncer too, and finds
them in the journal or on the tape.  Telemetry is no input of anything: a replay never sees it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import msgspec
import zmq

from workbench.engine.sockets import bind
from workbench.protocol.records import Record

SOCKET_NAME = "telemetry"
BATCH_EVERY_S = 0.05
LATEST_S = 0.2
"""So long a batch waits for the next turn that has another cause: a turn of its own costs more than the batch."""
STATUS_EVERY_S = 0.25
RECORDS_A_BATCH = 512
COLLECTED_MAX = 16 * RECORDS_A_BATCH
"""Records that wait for the next batch at most; older ones are dropped."""
BATCH_BYTES_MAX = 1 << 20
SENDING_MAX = 32
"""Batches that wait at the syncer for one subscriber, besides what its socket takes."""
KEPT_MAX = 1024
"""Batches that wait at a subscriber which does not take them."""
TAKEN_MAX = 256
CLOSE_MS = 200
END_LOOK_S = 0.5


class Batch(NamedTuple):
    """What was journalled between two moments.

    Attributes
    ----------
    sequence : int
        Of the batches of one life of the syncer, from 1.
    first : int
        Records of the run before these.
    records : list of Record
        In the order of the journal.
    status : dict or None
        The run now, as the syncer knows it, four times a second; None in other batches.
    missed : int
        Records between the last batch that came here and this one.
    """

    sequence: int
    first: int
    records: list[Record]
    status: dict[str, Any] | None
    missed: int


class _Frame(msgspec.Struct, array_like=True, frozen=True):
    sequence: int
    first: int
    records: list[Record]
    status: dict[str, Any] | None = None


def _plain(value: Any) -> Any:
    """Numpy scalars and arrays as the journal takes them."""
    return value.tolist()


class TelemetrySender:
    """The syncer's end; no call of it waits, whatever subscribers do.

    Parameters
    ----------
    folder : Path
        Runtime folder.
    first : int
        Records in the journal so far.
    clock : function, optional
        Monotonic time [s].

    Attributes
    ----------
    subscribed : bool
        Whether anybody listens.
    """

    def __init__(self, folder: Path, first: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = first
        self._waiting: list[Record] = []
        self._sequence = 0
        self._batch_at = self._status_at = -math.inf
        self._encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
        self.subscribed = False
        self._context: zmq.Context[Any] = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.XPUB)
        self._socket.linger = 0
        self._socket.sndhwm = SENDING_MAX
        self._socket.maxmsgsize = 64  # nobody has more to say than that it subscribes
        bind(self._socket, f"ipc://{folder / SOCKET_NAME}")

    def note(self, records: Sequence[Record]) -> None:
        """Records that are in the journal now."""
        self._next += len(records)
        if self.subscribed:
            self._waiting.extend(records)
            del self._waiting[:-COLLECTED_MAX]

    @property
    def left_ms(self) -> float:
        """Until `turn` has something to do; infinite if nothing waits."""
        if not self.subscribed:
            return math.inf
        due = self._batch_at + LATEST_S if self._waiting else self._status_at + STATUS_EVERY_S
        return max(0.0, (due - self._clock()) * 1e3)

    def turn(self, status: Callable[[], dict[str, Any]]) -> None:
        """Send what has come, if it is time; ``status`` is asked for when it is sent."""
        now = self._clock()
        if now - self._batch_at < BATCH_EVERY_S:
            return
        self._batch_at = now
        self._look()
        if self.subscribed:
            self._due(now, status)

    def _due(self, now: float, status: Callable[[], dict[str, Any]]) -> None:
        with_status = now - self._status_at >= STATUS_EVERY_S
        if with_status:
            self._status_at = now
        self._send(status() if with_status else None)

    def _look(self) -> None:
        """See whether somebody has subscribed first, or left last."""
        while self._socket.poll(0):
            self.subscribed = self._socket.recv(zmq.NOBLOCK).startswith(b"\x01")
            self._status_at = -math.inf
        if not self.subscribed:
            self._waiting.clear()

    def _send(self, status: dict[str, Any] | None) -> None:
        records, self._waiting = self._waiting, []
        first = self._next - len(records)
        for start in range(0, max(len(records), status is not None), RECORDS_A_BATCH):
            part = records[start : start + RECORDS_A_BATCH]
            self._sequence += 1
            data = self._encode(_Frame(self._sequence, first + start, part, status))
            if len(data) <= BATCH_BYTES_MAX:
                self._socket.send(data, zmq.NOBLOCK)  # a full queue drops it: that is what XPUB does
            status = None

    def close(self) -> None:
        """Send what waits, give it a moment to get through, and close the socket."""
        if self._waiting:
            self._send(None)
        self._context.destroy(CLOSE_MS if self.subscribed else 0)


class Telemetry:
    """A subscriber: takes batches when it likes, and is told what it missed.

    It finds the syncer again by itself when that was killed and started anew.

    Parameters
    ----------
    folder : Path
        Runtime folder of the run.
    running : function, optional
        Whether the run goes on; without it, iterating goes on for ever.

    Attributes
    ----------
    missed : int
        Records missed since the first batch: "not shown".
    refused : int
        Frames that were no batch.
    """

    def __init__(self, folder: Path, running: Callable[[], bool] = lambda: True) -> None:
        self._running = running
        self._decode = msgspec.msgpack.Decoder(_Frame).decode
        self._expected = -1
        self.missed = self.refused = 0
        self._context: zmq.Context[Any] = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.SUB)
        self._socket.linger = 0
        self._socket.rcvhwm = KEPT_MAX
        self._socket.maxmsgsize = BATCH_BYTES_MAX
        self._socket.reconnect_ivl = 50
        self._socket.subscribe(b"")
        self._socket.connect(f"ipc://{folder / SOCKET_NAME}")

    def take(self, timeout_s: float = 0.0) -> list[Batch]:
        """Batches that have come, at most `TAKEN_MAX`, waiting up to ``timeout_s`` seconds for the first."""
        found: list[Batch] = []
        wait_ms = max(0, math.ceil(timeout_s * 1e3))
        while len(found) < TAKEN_MAX and self._socket.poll(0 if found else wait_ms):
            batch = self._batch(self._socket.recv(zmq.NOBLOCK))
            if batch is not None:
                found.append(batch)
        return found

    def _batch(self, data: bytes) -> Batch | None:
        try:
            frame = self._decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.refused += 1
            return None
        missed = max(0, frame.first - self._expected) if self._expected >= 0 else 0
        self._expected = frame.first + len(frame.records)
        self.missed += missed
        return Batch(frame.sequence, frame.first, frame.records, frame.status, missed)

    def close(self) -> None:
        """Unsubscribe; a second call does nothing."""
        self._context.destroy(0)

    def __iter__(self) -> Iterator[Batch]:
        """Batches as they come, until the run is over."""
        while True:
            going = self._running()
            found = self.take(END_LOOK_S)
            yield from found
            if not (found or going):
                return

    def __enter__(self) -> Telemetry:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
