"""Payloads on their way: what waits to be sent, what arrives in chunks, and the buffers for both."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from workbench.algorithms.compiled import aligned
from workbench.engine.frames import CHUNK_BYTES, PIECE_BYTES, Chunk, Chunked, Frame, FrameError, frame

POOL_BYTES_MAX = 1 << 30


class Pool:
    """Byte buffers by size, used again: fresh memory of megabytes costs more in page faults than a copy."""

    def __init__(self) -> None:
        self._free: dict[int, list[np.ndarray]] = {}
        self._bytes = 0

    def take(self, nbytes: int) -> np.ndarray:
        """A uint8 buffer (nbytes,) that begins at a multiple of 64 bytes."""
        free = self._free.get(nbytes)
        if free:
            self._bytes -= nbytes
            return free.pop()
        return aligned((nbytes,), np.uint8)

    def give(self, buffer: np.ndarray) -> None:
        """Take a buffer back, unless there is plenty."""
        if self._bytes + buffer.nbytes <= POOL_BYTES_MAX:
            self._bytes += buffer.nbytes
            self._free.setdefault(buffer.nbytes, []).append(buffer)


class Staged:
    """Bytes that must stay as they are until ZeroMQ has sent them to everybody."""

    def __init__(self, buffer: np.ndarray) -> None:
        self.buffer = buffer
        self.users = 0
        self.trackers: list[Any] = []

    @property
    def idle(self) -> bool:
        """Whether nobody needs the bytes any more."""
        self.trackers = [tracker for tracker in self.trackers if not tracker.done]
        return self.users == 0 and not self.trackers


class Staging:
    """Copies of what is sent to several peers, one for each version of a fragment."""

    def __init__(self) -> None:
        self._current: dict[int, tuple[int, Staged]] = {}
        self._old: list[Staged] = []

    def put(self, fragment: int, version: int, payload: np.ndarray) -> Staged:
        """The copy of this version, made at the first call."""
        held = self._current.get(fragment)
        if held is not None and held[0] == version:
            return held[1]
        if held is not None:
            self._old.append(held[1])
        source = np.ascontiguousarray(payload).reshape(-1).view(np.uint8)
        staged = self._idle(source.nbytes) or Staged(aligned((source.nbytes,), np.uint8))
        staged.buffer[:] = source
        self._current[fragment] = (version, staged)
        return staged

    def _idle(self, nbytes: int) -> Staged | None:
        for index, staged in enumerate(self._old):
            if staged.buffer.nbytes == nbytes and staged.idle:
                return self._old.pop(index)
        return None


class Waiting(NamedTuple):
    """A frame that waits for its channel, with the payload that follows it in chunks."""

    parts: tuple[bytes, ...]
    reference: Any = None
    staged: Staged | None = None
    done: tuple[int, int] | None = None
    """Fragment and version of an UPDATE, told when its last byte is handed over."""


class Full(Exception):
    """The channel takes no more now."""


Sender = Callable[[tuple[Any, ...], bool], Any]
"""Sends parts, without a copy if so told, and returns a tracker then; raises `Full` or `Unreachable`."""


class Unreachable(Exception):
    """The peer is gone."""


class Queue:
    """Frames of one channel to one peer, first in, first out; states wait in a lane beside it.

    Parameters
    ----------
    limit : int
        Frames with payloads that may wait.
    """

    def __init__(self, limit: int) -> None:
        self._waiting: deque[Waiting] = deque()
        self._limit = limit
        self._offset = -1
        self._transfers = 0
        self._lane: deque[tuple[tuple[bytes, ...], Chunked, Staged]] = deque()
        self._lane_offset = -1
        self.progress = 0
        """Frames handed over so far."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._lane)

    @property
    def full(self) -> bool:
        """Whether another message would be one too many."""
        return len(self._waiting) >= self._limit

    def next_transfer(self) -> int:
        """Number for the next payload in chunks."""
        self._transfers += 1
        return self._transfers

    def put(self, waiting: Waiting) -> None:
        """Append a frame."""
        if waiting.staged is not None:
            waiting.staged.users += 1
        self._waiting.append(waiting)

    def put_state(self, parts: tuple[bytes, ...], reference: Chunked, staged: Staged) -> None:
        """Append a message that goes out whenever nothing else waits, its payload in pieces."""
        staged.users += 1
        self._lane.append((parts, reference, staged))

    def pump(self, send: Sender) -> list[tuple[int, int]]:
        """Hand over what the channel takes; returns the updates that are through."""
        through = []
        try:
            while self._waiting:
                head = self._waiting[0]
                self._advance(head, send)
                self._drop_first()
                if head.done is not None:
                    through.append(head.done)
            self._pump_lane(send)
        except Full:
            pass
        return through

    def _pump_lane(self, send: Sender) -> None:
        while self._lane:
            parts, reference, staged = self._lane[0]
            if self._lane_offset < 0:
                send(parts, False)
                self._lane_offset = 0
            data = memoryview(staged.buffer)
            while self._lane_offset < len(data):
                piece = data[self._lane_offset : self._lane_offset + PIECE_BYTES]
                head = frame(Frame.PIECE, Chunk(reference.transfer, self._lane_offset, len(piece)))
                staged.trackers.append(send((head, piece), True))
                self._lane_offset += len(piece)
                self.progress += 1
            self._end_lane()

    def _end_lane(self) -> None:
        self._lane.popleft()[2].users -= 1
        self._lane_offset = -1

    def clear(self) -> None:
        """Forget all: the peer is gone."""
        while self._waiting:
            self._drop_first()
        while self._lane:
            self._end_lane()

    def _advance(self, waiting: Waiting, send: Sender) -> None:
        if self._offset < 0:
            send(waiting.parts, False)
            self._offset = 0
            self.progress += 1
        if waiting.staged is None:
            return
        data = memoryview(waiting.staged.buffer)
        while self._offset < len(data):
            piece = data[self._offset : self._offset + CHUNK_BYTES]
            head = frame(Frame.CHUNK, Chunk(waiting.reference.transfer, self._offset, len(piece)))
            waiting.staged.trackers.append(send((head, piece), True))
            self._offset += len(piece)
            self.progress += 1

    def _drop_first(self) -> None:
        waiting = self._waiting.popleft()
        self._offset = -1
        if waiting.staged is not None:
            waiting.staged.users -= 1


class Arriving:
    """A payload that comes in chunks, in order, into one buffer whose size was checked before."""

    def __init__(self, message: Any, reference: Chunked, buffer: np.ndarray, piece_bytes: int = CHUNK_BYTES) -> None:
        self.message = message
        self.transfer = reference.transfer
        self.buffer = buffer
        self._filled = 0
        self._piece_bytes = piece_bytes

    def place(self, chunk: Chunk) -> memoryview:
        """Where the next chunk goes; `FrameError` ``chunk`` if it is not the next one."""
        left = self.buffer.nbytes - self._filled
        if (chunk.transfer, chunk.offset, chunk.nbytes) != (self.transfer, self._filled, min(left, self._piece_bytes)):
            raise FrameError("chunk")
        return memoryview(self.buffer)[self._filled : self._filled + chunk.nbytes]

    def took(self, chunk: Chunk, stored: int) -> bool:
        """Note a chunk that was read to its place; whether the payload is whole."""
        if stored != chunk.nbytes:
            raise FrameError("chunk")
        self._filled += stored
        return self._filled == self.buffer.nbytes
