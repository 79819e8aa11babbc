"""Messages as they come off a channel: checked, put together with their payloads, kept under handles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.algorithms.codecs import CODECS
from workbench.engine.blocks import Descriptor
from workbench.engine.checks import payload_bytes
from workbench.engine.frames import (
    PIECE_BYTES,
    Buffer,
    Chunk,
    Chunked,
    Frame,
    FrameError,
    body_of,
    decode_reference,
    decoded,
)
from workbench.engine.sockets import Part
from workbench.engine.transfers import Arriving, Pool
from workbench.protocol.messages import BULK, Fragment, PeerState, StateCopy, Update

CHUNK_HEAD_MAX = 128


class Held(NamedTuple):
    """A payload that somebody uses, and what is to be done when it is not used any more."""

    array: np.ndarray
    give_back: Callable[[], None]


class Payloads:
    """Payloads by handle."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._held)

    def keep(self, array: np.ndarray, give_back: Callable[[], None]) -> int:
        """Keep a payload under a new handle; it can be read only, its buffer may be written again once it is back."""
        self._next += 1
        view = array.view()
        view.flags.writeable = False
        self._held[self._next] = Held(view, give_back)
        return self._next

    def get(self, handle: int) -> np.ndarray:
        """The payload, read-only; `KeyError` if it was released."""
        return self._held[handle].array

    def release(self, handle: int) -> None:
        """Let go; an unknown handle is nothing."""
        held = self._held.pop(handle, None)
        if held is not None:
            held.give_back()


class Receiver:
    """What one peer sends: messages of one direction, each with its payload.

    Parameters
    ----------
    decode, check : callable
        Bytes to message; raises `FrameError` for a message that must not be.
    sizes : sequence of int
        Parameters of each fragment.
    mapped : callable (message, Descriptor) -> handle
        Makes a payload in a block usable, or raises `FrameError`.
    payloads : Payloads
    pool : Pool
        Buffers for payloads in chunks.
    """

    def __init__(
        self,
        decode: Callable[[Any], Any],
        check: Callable[[Any], None],
        sizes: Sequence[int],
        mapped: Callable[[Any, Descriptor], int],
        payloads: Payloads,
        pool: Pool,
    ) -> None:
        self._decode = decode
        self._check = check
        self._sizes = sizes
        self._mapped = mapped
        self._payloads = payloads
        self._pool = pool
        self._arriving: Arriving | None = None
        self._state: Arriving | None = None
        self._chunk: Chunk | None = None
        self.counted: list[str] = []
        """Words for what was wrong with messages that are passed on all the same, without their payload."""

    def place(self, head: Buffer) -> memoryview | None:
        """Where the second part of a frame goes: for the chunk that is due into the payload's buffer."""
        self._chunk = None
        kind = head[1] if 2 <= len(head) <= CHUNK_HEAD_MAX else 0
        arriving = {int(Frame.CHUNK): self._arriving, int(Frame.PIECE): self._state}.get(kind)
        if arriving is None:
            return None
        try:
            chunk = body_of(Frame(kind), head)
            space = arriving.place(chunk)
        except FrameError:
            return None
        self._chunk = chunk
        return space

    def take(self, kind: Frame, part: Part, channel: int) -> Any:
        """The message that a frame completes, None if there is more to come.

        Raises
        ------
        FrameError
            The frame is dropped; with it, on bulk, a payload of which only a piece came.
        """
        if kind is Frame.CHUNK and channel == BULK:
            return self._take_chunk(part)
        if kind is Frame.PIECE and channel == BULK:
            return self._take_piece(part)
        if channel == BULK:
            self._abandon_payload()
        if kind not in (Frame.MESSAGE, Frame.STATE) or part.surplus:
            raise FrameError("garbled")
        message = decoded(self._decode, part.head[2:])
        self._check(message)
        if kind is Frame.STATE:
            self._begin_state(message, part, channel)
            return None
        if not isinstance(message, Fragment | Update | StateCopy | PeerState):
            if part.body is not None:
                raise FrameError("garbled")
            return message
        message.handle = -1
        if channel != BULK or part.body is None or len(part.body) > 512:
            raise FrameError("reference")
        return self._with_payload(message, decoded(decode_reference, part.body))

    def abandon(self) -> None:
        """Forget payloads of which the rest will not come."""
        self._abandon_payload()
        if self._state is not None:
            self._pool.give(self._state.buffer)
            self._state = None

    def _begin_state(self, message: Any, part: Part, channel: int) -> None:
        """The header of a state whose bytes come in pieces between other messages."""
        if not isinstance(message, StateCopy | PeerState) or channel != BULK or part.body is None:
            raise FrameError("garbled")
        reference = decoded(decode_reference, part.body)
        if not isinstance(reference, Chunked) or reference.nbytes != message.nbytes:
            raise FrameError("size")
        if self._state is not None:
            self._pool.give(self._state.buffer)
        message.handle = -1
        self._state = Arriving(message, reference, self._pool.take(message.nbytes), PIECE_BYTES)

    def _take_piece(self, part: Part) -> Any:
        arriving, chunk = self._state, self._chunk
        if arriving is None or chunk is None or part.surplus:
            raise FrameError("chunk")
        if not arriving.took(chunk, part.stored):
            return None
        self._state = None
        return self._whole(arriving)

    def _abandon_payload(self) -> None:
        if self._arriving is not None:
            self._pool.give(self._arriving.buffer)
            self._arriving = None

    def _with_payload(self, message: Any, reference: Any) -> Any:
        expected = payload_bytes(message, self._sizes)
        fits = reference.nbytes == expected and (not isinstance(message, Fragment) or message.nbytes == expected)
        if isinstance(reference, Descriptor):
            try:
                message.handle = self._mapped(message, reference)
                if not fits:
                    self._payloads.release(message.handle)
                    raise FrameError("size")
            except FrameError as error:
                return self._without(message, str(error))
            return message
        if not fits:
            return self._without(message, "size")
        self._arriving = Arriving(message, reference, self._pool.take(expected))
        return None

    def _without(self, message: Any, reason: str) -> Any:
        """A FRAGMENT or a state is passed on, so that its loss is known; an UPDATE will be sent again."""
        if isinstance(message, Update):
            raise FrameError(reason)
        self.counted.append(reason)
        message.handle = -1
        return message

    def _take_chunk(self, part: Part) -> Any:
        arriving, chunk = self._arriving, self._chunk
        try:
            if arriving is None or chunk is None or part.surplus:
                raise FrameError("chunk")
            if not arriving.took(chunk, part.stored):
                return None
        except FrameError:
            self.abandon()
            raise
        self._arriving = None
        return self._whole(arriving)

    def _whole(self, arriving: Arriving) -> Any:
        message, buffer = arriving.message, arriving.buffer
        message.handle = self._payloads.keep(as_elements(message, buffer), lambda: self._pool.give(buffer))
        return message


def as_elements(message: Any, payload: np.ndarray) -> np.ndarray:
    """Payload bytes as a vector of the type that the message's codec writes; a state's are bytes."""
    if isinstance(message, StateCopy | PeerState):
        return payload
    return payload.view(CODECS[message.codec].dtype if isinstance(message, Fragment) else np.float32)
