"""Frames of the wire: two bytes that say version and kind, then one typed header, then at most one more part.

HELLO      first on both channels: who connects, and to which run
OPENED     the answer on both: the number of the connection
REFUSAL    the other answer: why not
GOODBYE    the sender's end of this connection is closed
PING       nothing; its fate tells whether the peer is there
FREE       a block's slot may be used again
MESSAGE    a message of the protocol, and where its payload is
CHUNK      a piece of the payload of the message before it on this channel, and the bytes
ASK        on control, before any HELLO: what a learner that was started by hand takes the run to be
FACTS      the answer, if the syncer agrees (else REFUSAL): what a supervisor would have told it
STATE      a message whose payload follows in pieces, whenever nothing else waits on this channel
PIECE      a piece of the payload of the last STATE on this channel, and the bytes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from workbench.algorithms.digest import digest
from workbench.engine.blocks import Descriptor
from workbench.protocol.messages import LearnerMessage, SyncerMessage

WIRE_VERSION = 1
HEADER_BYTES_MAX = 8 << 20
CHUNK_BYTES = 4 << 20
PIECE_BYTES = 256 << 10
"""Of a state: what a fragment may have to wait for is a few of these."""
FRAME_BYTES_MAX = max(HEADER_BYTES_MAX, CHUNK_BYTES)
"""No part of a frame is longer: the transport cuts off who claims more, before it allocates anything."""

Buffer: TypeAlias = bytes | memoryview


class Frame(IntEnum):
    """Kinds of frame; values travel: append, never renumber."""

    HELLO = 1
    OPENED = 2
    REFUSAL = 3
    GOODBYE = 4
    PING = 5
    FREE = 6
    MESSAGE = 7
    CHUNK = 8
    ASK = 9
    FACTS = 10
    STATE = 11
    PIECE = 12


class Hello(msgspec.Struct, frozen=True):
    """Who connects: ``mapped`` if its blocks can be mapped, ``sizes`` the digest of its manifest's fragment sizes."""

    run_id: str
    learner: int
    process_number: int
    sizes: int
    mapped: bool


class Peer(NamedTuple):
    """Who is at the other end of a connection."""

    learner: int
    process_number: int


class Opened(msgspec.Struct, frozen=True):
    """The connection's number, and the name before the dot of the syncer's block files."""

    connection: int
    blocks: str


class Refusal(msgspec.Struct, frozen=True):
    """Why a process is not let in, for a person to read."""

    reason: str


class Ask(msgspec.Struct, frozen=True):
    """Does the run have this learner, and these values (`workbench.engine.agreement`)?"""

    learner: int
    claims: dict[str, str]


class Facts(msgspec.Struct, frozen=True):
    """What a learner has to know of the run that it joins.

    Attributes
    ----------
    run_id : str
        For its HELLO.
    number : int
        Its process number must be this or higher.
    now_ns : int
        Time since the run began [ns].
    fingerprint : dict of str
        Of the machine that made the run's initial weights.
    present : str
        Where the process is that takes part as this learner now; empty if none does.
    """

    run_id: str
    number: int
    now_ns: int
    fingerprint: dict[str, str]
    present: str


class Free(msgspec.Struct, frozen=True, gc=False):
    """The reader needs the slot no more; or, with a name, the file of a state."""

    slot: int
    generation: int
    file: str = ""


class Chunked(msgspec.Struct, tag="chunked", frozen=True, gc=False):
    """The payload follows on this channel, in chunks of `CHUNK_BYTES`, the last one shorter."""

    transfer: int
    nbytes: int


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """Which piece follows."""

    transfer: int
    offset: int
    nbytes: int


Reference: TypeAlias = Descriptor | Chunked


class FrameError(ValueError):
    """A frame that is dropped; its text is one of a few words, so that counting them takes no room."""


_BODIES: dict[int, Any] = {
    Frame.HELLO: Hello,
    Frame.OPENED: Opened,
    Frame.REFUSAL: Refusal,
    Frame.FREE: Free,
    Frame.CHUNK: Chunk,
    Frame.PIECE: Chunk,
    Frame.ASK: Ask,
    Frame.FACTS: Facts,
}
_DECODERS: dict[int, Callable[[Any], Any]] = {
    kind: msgspec.msgpack.Decoder(body, strict=True).decode for kind, body in _BODIES.items()
}
decode_learner_message = msgspec.msgpack.Decoder(LearnerMessage).decode
decode_syncer_message = msgspec.msgpack.Decoder(SyncerMessage).decode
decode_reference = msgspec.msgpack.Decoder(Reference).decode
encode = msgspec.msgpack.Encoder().encode


def frame(kind: Frame, body: Any = None) -> bytes:
    """First part of a frame."""
    head = bytes((WIRE_VERSION, kind))
    return head if body is None else head + encode(body)


def message_frame(message: LearnerMessage, kind: Frame = Frame.MESSAGE) -> bytes:
    """First part of a learner's message; records that find no room are left to a later one (PROTOCOL section 6)."""
    head = frame(kind, message)
    while len(head) > HEADER_BYTES_MAX and message.records:
        message = msgspec.structs.replace(message, records=message.records[: len(message.records) // 2])
        head = frame(kind, message)
    return head


def kind_of(head: Buffer) -> Frame:
    """Kind of a frame.

    Raises
    ------
    FrameError
        ``garbled``, or ``version`` for the frames of another version of the wire.
    """
    if len(head) < 2:
        raise FrameError("garbled")
    if head[0] != WIRE_VERSION:
        raise FrameError("version")
    try:
        return Frame(head[1])
    except ValueError:
        raise FrameError("garbled") from None


def body_of(kind: Frame, head: Buffer) -> Any:
    """Typed header of a frame that is no message."""
    return decoded(_DECODERS[kind], head[2:])


def decoded(decode: Callable[[Any], Any], data: Buffer) -> Any:
    """Decode, or raise `FrameError` ``garbled``: nothing is allocated for sizes that are only claimed."""
    if len(data) > HEADER_BYTES_MAX:
        raise FrameError("huge")
    try:
        return decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError):
        raise FrameError("garbled") from None


def sizes_digest(sizes: Sequence[int]) -> int:
    """Digest of fragment sizes, by which both ends see that they mean the same model."""
    return digest(np.array(sizes, np.int64).tobytes())
