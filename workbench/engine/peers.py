"""The syncer's side of one connection, and the frames that open one."""

from __future__ import annotations

import time
from collections import OrderedDict
from pathlib import Path

from workbench.engine.blocks import BlockError, BlockReader, Descriptor
from workbench.engine.frames import FrameError, Hello, Peer
from workbench.engine.receiving import Receiver
from workbench.engine.transfers import Queue

PENDING_MAX = 64
LEARNERS_MAX = 1 << 16
CHANNELS = frozenset((0, 1))


class Link:
    """An open connection.

    Attributes
    ----------
    number : int
    identity : bytes
    peer : Peer
    queue : Queue
        Bulk frames on their way out.
    receiver : Receiver
    blocks : Path or None
        The learner's block file, None across machines.
    """

    def __init__(self, number: int, identity: bytes, hello: Hello, queue: Queue, blocks: Path | None) -> None:
        self.number = number
        self.identity = identity
        self.peer = Peer(hello.learner, hello.process_number)
        self.queue = queue
        self.blocks = blocks
        self.open = True
        self.half_since = 0.0
        """When one of its channels was first found closed."""
        self.receiver: Receiver
        self._reader: BlockReader | None = None

    def reader(self, descriptor: Descriptor, slot_bytes: int) -> BlockReader:
        """The learner's blocks; `FrameError` ``reference`` if the descriptor names others, or they are not sound."""
        if self.blocks is None or descriptor.file != self.blocks.name:
            raise FrameError("reference")
        if self._reader is None:
            try:
                self._reader = BlockReader(self.blocks, slot_bytes)
            except (OSError, BlockError):
                raise FrameError("reference") from None
        return self._reader


class Doorstep:
    """Processes that have said who they are on one channel only; the oldest makes room for the newest."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[bytes, tuple[Hello, set[int]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def greet(self, identity: bytes, hello: Hello, channel: int) -> bool:
        """Note a HELLO; whether both channels have brought the same now."""
        held = self._waiting.get(identity)
        if held is None or held[0] != hello:
            held = self._waiting[identity] = (hello, set())
        held[1].add(channel)
        if held[1] == CHANNELS:
            del self._waiting[identity]
            return True
        while len(self._waiting) > PENDING_MAX:
            self._waiting.popitem(last=False)
        return False


class Probing:
    """When to ask all peers whether they are there: for a second after some connection ended, less and less often.

    ZeroMQ says that a connection ended a moment before it can say whose, and never says whose by itself.
    """

    def __init__(self) -> None:
        self._at = self._pause = 0.0

    def begin(self) -> None:
        """A connection ended."""
        self._at, self._pause = time.monotonic(), 0.001

    @property
    def left_ms(self) -> float:
        """Until the next question; infinite if none is planned."""
        return max(0.0, (self._at - time.monotonic()) * 1e3) if self._pause else float("inf")

    def due(self) -> bool:
        """Whether to ask now; plans the next time."""
        if not self._pause or time.monotonic() < self._at:
            return False
        self._at += self._pause
        self._pause = self._pause * 2 if self._pause < 0.5 else 0.0
        return True
