"""The wire between learners and the syncer: a learner's end (the interface stands in `workbench.engine.wire`)."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from workbench.engine.attempt import Attempt
from workbench.engine.blocks import Descriptor
from workbench.engine.checks import check_syncer_message
from workbench.engine.frames import (
    Buffer,
    Frame,
    FrameError,
    Hello,
    body_of,
    decode_syncer_message,
    frame,
    kind_of,
    message_frame,
    sizes_digest,
)
from workbench.engine.learner_blocks import Captures, Updates
from workbench.engine.receiving import Payloads, Receiver
from workbench.engine.security import ClientKeys
from workbench.engine.sockets import Part, endpoints, make_context, nowhere, receive, transmit
from workbench.engine.state_blocks import StateBlocks, put_state, state_view
from workbench.engine.transfers import Full, Pool, Queue, Unreachable, Waiting
from workbench.engine.waits import Waits
from workbench.protocol.messages import BULK, CONTROL, Fragment, LearnerMessage, PeerState, StateCopy, SyncerMessage

Payload = np.ndarray | Descriptor
FRAMES_A_POLL = 512
PATIENCE_S = 5.0
"""For so long another `LearnerWire.connect` leaves one in progress alone."""


class LearnerWire:
    """A learner's end of the wire; see the top of `workbench.engine.wire`.

    Parameters
    ----------
    run_id : str
    sizes : sequence of int
        Parameters of each fragment.
    learner, process_number : int
    address : str
        `SyncerWire.address`: a runtime folder, or ``tcp://HOST:PORT``.
    slots : int
        Captures that may be on their way at once in mapped memory; more than these travel in chunks.
    keys : ClientKeys, optional

    Attributes
    ----------
    refusal : str
        Why the syncer would not have this process; empty again once it does.
    refused : Counter
        Frames that were dropped, by reason.

    Raises
    ------
    ConfigError
        If the address is none.
    """

    def __init__(
        self,
        run_id: str,
        sizes: Sequence[int],
        learner: int,
        process_number: int,
        address: str,
        *,
        slots: int = 6,
        keys: ClientKeys | None = None,
    ) -> None:
        self._addresses = endpoints(address)
        self._folder = None if "://" in address else Path(address)
        self._sizes = list(sizes)
        self._hello = Hello(run_id, learner, process_number, sizes_digest(sizes), self._folder is not None)
        self._slots = slots
        self._keys = keys
        self.refusal = ""
        self.refused: Counter[str] = Counter()
        self._payloads = Payloads()
        self._pool = Pool()
        self._opened: list[int] = []
        self._closed: list[int] = []
        self._waits = Waits()
        self._context = make_context()
        self._attempt: Attempt | None = None
        self._states = StateBlocks(None)

    def connect(self) -> None:
        """Begin a connection anew; one that is in progress is left alone for `PATIENCE_S`."""
        now = self._attempt
        if now is not None and now.number < 0 and time.monotonic() - now.since < PATIENCE_S:
            return
        self._end()
        self._start()

    def _start(self) -> None:
        identity = b"L" + secrets.token_bytes(12)
        self._queue = Queue(256)
        self._receiver = Receiver(
            decode_syncer_message,
            partial(check_syncer_message, sizes=self._sizes),
            self._sizes,
            self._mapped,
            self._payloads,
            self._pool,
        )
        self._attempt = Attempt(self._context, identity, self._addresses, self._keys)
        blocks = None if self._folder is None else self._folder / self._attempt.block_name
        self._captures = Captures(blocks, self._slots, 4 * max(self._sizes))
        self._states = StateBlocks(blocks)
        self._updates = Updates(self._folder, self._sizes)
        for socket in self._attempt.waited:
            self._waits.add(socket)
        with suppress(Full, Unreachable):  # refused already: the next poll sees it
            for socket in self._attempt.sockets:
                transmit(socket, (frame(Frame.HELLO, self._hello),))

    def _end(self) -> None:
        """Close the sockets and forget what belongs to this connection; payloads that came stay."""
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        for socket in attempt.waited:
            self._waits.remove(socket)
        attempt.close()
        self._queue.clear()
        self._receiver.abandon()
        self._captures.close()
        self._states.close()

    def stage(self, data: np.ndarray) -> Descriptor | np.ndarray:
        """Lay a state, uint8 (nbytes,), where its reader maps it; itself if there is no such place. For any thread."""
        return self._states.put(data) or data

    def opened(self) -> list[int]:
        """Numbers of the connections that opened since the last call."""
        opened, self._opened = self._opened, []
        return opened

    def closed(self) -> list[int]:
        """Numbers of the connections that ended since the last call, -1 for one that never opened."""
        closed, self._closed = self._closed, []
        return closed

    @property
    def connection(self) -> int:
        """Number of the open connection, -1 if there is none."""
        return -1 if self._attempt is None else self._attempt.number

    def poll(self, timeout_ms: float) -> list[tuple[int, SyncerMessage]]:
        """Messages that came, waiting at most ``timeout_ms`` for something to happen; never raises for what came."""
        messages: list[tuple[int, SyncerMessage]] = []
        self._pump()
        unsent = self._attempt.sockets[BULK] if self._attempt is not None and len(self._queue) else None
        self._waits.wait(0 if self._opened or self._closed else timeout_ms, unsent)
        if self._attempt is None:
            return messages
        self._attempt.look()
        for channel in (CONTROL, BULK):
            self._read(channel, messages)
        if self._attempt.gone:
            self.refusal = self._attempt.refusal
            self._closed.append(self._attempt.number)
            self._end()
        self._pump()
        return messages

    def _read(self, channel: int, messages: list[tuple[int, SyncerMessage]]) -> None:
        attempt = self._attempt
        assert attempt is not None
        count = 0
        while attempt.gone or count < FRAMES_A_POLL:  # of an ended connection all that came is still read
            part = receive(attempt.sockets[channel], self._place if channel == BULK else nowhere)
            if part is None:
                return
            count += 1
            try:
                message = self._dispatch(attempt, part, channel)
            except FrameError as error:
                self.refused[str(error)] += 1
                continue
            if message is not None:
                messages.append((attempt.number, message))

    def _place(self, identity: bytes, head: Buffer) -> memoryview | None:
        return self._receiver.place(head)

    def _dispatch(self, attempt: Attempt, part: Part, channel: int) -> Any:
        try:
            kind = kind_of(part.head)
        except FrameError as error:
            if str(error) == "version" and attempt.number < 0:
                attempt.fail("the syncer speaks another version of the wire: use the same release on both sides")
            raise
        if attempt.heard(kind, part.head, channel):
            if attempt.just_opened:
                attempt.just_opened, self.refusal = False, ""
                self._opened.append(attempt.number)
        elif kind is Frame.FREE:
            freed = body_of(kind, part.head)
            self._states.free(freed.file) if freed.file else self._captures.free(freed)
        else:
            return self._receiver.take(kind, part, channel)
        return None

    def _mapped(self, message: Any, descriptor: Descriptor) -> int:
        assert self._attempt is not None
        if isinstance(message, PeerState):
            return self._payloads.keep(state_view(self._folder, descriptor), lambda: None)
        buffer = self._pool.take(4 * self._sizes[message.fragment])
        try:
            self._updates.read(self._attempt.blocks, message.fragment, descriptor, buffer)
        except FrameError:
            self._pool.give(buffer)
            raise
        return self._payloads.keep(buffer.view(np.float32), lambda: self._pool.give(buffer))

    def payload(self, handle: int) -> np.ndarray:
        """Payload of an UPDATE: float32 (size,), read-only, 64-byte aligned; `KeyError` if it was released."""
        return self._payloads.get(handle)

    def release(self, handle: int) -> None:
        """The payload is not needed any more; its array is used again for others."""
        self._payloads.release(handle)

    def send(self, connection: int, channel: int, message: LearnerMessage, payload: Payload | None = None) -> bool:
        """Put a message on a channel, never waiting; False if ``connection`` is not the open one, or it takes no more.

        The ``payload`` of a FRAGMENT, as its codec wrote it, must not change afterwards; that of a STATE_COPY is what
        `stage` gave.
        """
        attempt = self._attempt
        if attempt is None or attempt.number < 0 or connection != attempt.number or attempt.gone:
            return False
        head = message_frame(message)
        if channel == CONTROL:
            with suppress(Full, Unreachable):
                transmit(attempt.sockets[CONTROL], (head,))
                return True
            return False
        if self._queue.full:
            return False
        if isinstance(message, StateCopy):
            put_state(self._queue, message, payload)
        elif isinstance(message, Fragment):
            if not isinstance(payload, np.ndarray):
                raise ValueError(f"a contribution to fragment {message.fragment} without its payload")
            self._queue.put(self._captures.waiting(head, payload, self._queue))
        else:
            self._queue.put(Waiting((head,)))
        self._pump()
        return True

    def _pump(self) -> None:
        if self._attempt is not None and len(self._queue):
            socket = self._attempt.sockets[BULK]
            with suppress(Unreachable):
                self._queue.pump(partial(transmit, socket))

    def ready(self) -> list[int]:
        """Watched file descriptors that were readable at the last poll."""
        return self._waits.ready()

    def watch(self, fd: int) -> None:
        """Have `poll` return when ``fd`` is readable."""
        self._waits.watch(fd)

    def unwatch(self, fd: int) -> None:
        """Forget ``fd``; before it is closed."""
        self._waits.unwatch(fd)

    def wake(self) -> None:
        """End the poll in progress, or the next; the one method that other threads may call."""
        self._waits.wake()

    def close(self, linger_ms: int = 500) -> None:
        """Close everything, giving what was sent at most ``linger_ms`` to be read; a second call does nothing."""
        if self._context.closed:
            return
        if self._attempt is not None:
            self._pump()
            self._attempt.part(linger_ms)
            self._end()
        self._context.term()
        self._waits.close()
