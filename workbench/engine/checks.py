"""What a decoded message must satisfy before a machine sees it: who, which fragment, how many, how large."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from workbench.algorithms.codecs import CODECS
from workbench.engine.frames import FrameError, Peer
from workbench.protocol.messages import (
    Begin,
    CopyAsked,
    Fragment,
    Join,
    LearnerMessage,
    Mark,
    Marker,
    Metadata,
    PeerState,
    Pull,
    Refused,
    StateCopy,
    StateUnusable,
    SyncerMessage,
    Update,
    Welcome,
)
from workbench.protocol.records import LEARNER_PROGRAM, Kind, Record, process_of

CHANNELS = 2
COUNT_MAX = 1 << 53
"""Counts, times and versions stay exact in every number format on the way."""
CLOCK_MAX = 1 << 16
WORD_MAX = 256
IDENTITY_MAX = 64
STATE_FACTOR = 32
STATE_BYTES_MIN = 1 << 20
"""A state has at most so many times the bytes of the parameters, and at least so many are allowed."""
LEARNER_KINDS = frozenset({*LEARNER_PROGRAM, Kind.PULL_REFUSED, Kind.STATE_LEFT})


def check_learner_message(message: LearnerMessage, peer: Peer, sizes: Sequence[int]) -> None:
    """Check a message that came over the connection of ``peer``.

    Raises
    ------
    FrameError
        ``learner``, ``fragment``, ``codec``, ``number`` or ``record``.
    """
    if message.learner != peer.learner:
        raise FrameError("learner")
    if isinstance(message, Join):
        _identity(message.identity)
        _lists(len(sizes), message.c_steps, message.c_tokens, message.base)
        _numbers((message.n, message.g))
        if message.process_number != peer.process_number:
            raise FrameError("learner")
    elif isinstance(message, Metadata):
        _lists(len(sizes), message.c_steps, message.c_tokens, message.base)
        _numbers((message.incarnation, message.n, message.g, message.step_ns, message.origin, message.revision))
    elif isinstance(message, Fragment):
        _fragment(message, sizes)
    elif isinstance(message, Refused):
        _in_range(message.fragment, len(sizes))
        _numbers((message.incarnation, message.round, message.origin))
        _words((message.reason,))
    elif isinstance(message, StateCopy):
        _state(message, sizes)
        _lists(len(sizes), message.base)
        _numbers((message.number, message.copied, message.step, message.origin))
    elif isinstance(message, Mark):
        _numbers((message.incarnation, message.snapshot, message.origin))
        _in_range(message.channel, CHANNELS)
    elif isinstance(message, StateUnusable):
        _numbers((message.incarnation, message.number))
    else:
        _numbers((message.incarnation,))
    _clock(message.clock)
    for record in message.records:
        _record(record, peer.learner, len(sizes))


def check_syncer_message(message: SyncerMessage, sizes: Sequence[int]) -> None:
    """Check a message of the syncer; raises `FrameError` as `check_learner_message` does."""
    _clock(message.clock)
    _numbers((message.incarnation, message.acked, message.closed_below))
    if isinstance(message, Welcome):
        _lists(len(sizes), message.versions)
        _numbers((message.epoch, message.t, message.revision, message.first_step, message.first_seq))
    elif isinstance(message, Pull):
        _in_range(message.fragment, len(sizes))
        _numbers((message.round, message.base_version, message.origin))
        if message.codec not in CODECS:
            raise FrameError("codec")
    elif isinstance(message, Update):
        _in_range(message.fragment, len(sizes))
        _numbers((message.version, message.round, message.last_merged, message.last_merged_step, message.anew))
    elif isinstance(message, CopyAsked):
        _lists(len(sizes), message.stamp)
        _numbers((message.number, message.joiner, message.origin))
    elif isinstance(message, PeerState):
        _state(message, sizes)
        _numbers((message.number, message.donor, message.copied, message.origin))
    elif isinstance(message, Begin):
        _numbers((message.snapshot, message.origin))
        _words((message.source,))
    elif isinstance(message, Marker):
        _numbers((message.snapshot, message.origin))
        _in_range(message.channel, CHANNELS)


def payload_bytes(message: LearnerMessage | SyncerMessage, sizes: Sequence[int]) -> int:
    """Bytes that the payload of a checked message has, 0 for one that bears none."""
    if isinstance(message, Fragment):
        return sizes[message.fragment] * CODECS[message.codec].dtype.itemsize
    if isinstance(message, StateCopy | PeerState):
        return message.nbytes
    return sizes[message.fragment] * 4 if isinstance(message, Update) else 0


def _state(message: StateCopy | PeerState, sizes: Sequence[int]) -> None:
    """A state is as large as a model of these fragments makes it: checked before anything is allocated for it."""
    if not 0 < message.nbytes <= max(STATE_FACTOR * 4 * sum(sizes), STATE_BYTES_MIN):
        raise FrameError("size")
    _numbers((message.incarnation,))
    _digest(message.digest)


def _identity(identity: dict[str, Any]) -> None:
    """Who a process is: a few words and numbers, and its fingerprint, a table of words."""
    if len(identity) > IDENTITY_MAX:
        raise FrameError("number")
    for key, value in identity.items():
        if isinstance(value, dict):
            if key != "fingerprint" or len(value) > IDENTITY_MAX or not all(isinstance(v, str) for v in value.values()):
                raise FrameError("number")
            _words((*value, *value.values()))
        elif isinstance(value, str):
            _words((key, value))
        elif type(value) is int:
            _numbers((value,))
        else:
            raise FrameError("number")


def _fragment(message: Fragment, sizes: Sequence[int]) -> None:
    _in_range(message.fragment, len(sizes))
    if message.codec not in CODECS:
        raise FrameError("codec")
    m = message
    _numbers((m.nbytes, m.incarnation, m.round, m.base_version, m.step, m.steps, m.tokens, m.captured_ns, m.origin))
    _digest(m.digest)


def _record(record: Record, learner: int, fragments: int) -> None:
    r = record
    if r.process != process_of(learner) or r.kind not in LEARNER_KINDS or r.seq < 1:
        raise FrameError("record")
    _in_range(r.fragment + 1, fragments + 1)
    _clock(r.clock)
    if r.cause is not None:
        _numbers(r.cause)
    _numbers((r.incarnation, r.seq, r.time_ns, r.peer, r.round, r.version, r.base_version, r.step, r.global_step))
    _numbers((r.steps, r.tokens, r.setting, r.epoch))
    _digest(r.digest)
    _words((r.reason, *r.detail))


def _lists(length: int, *lists: list[int]) -> None:
    for values in lists:
        if len(values) != length:
            raise FrameError("fragment")
        _numbers(values)


def _numbers(values: Iterable[int]) -> None:
    for value in values:
        if not -1 <= value < COUNT_MAX:
            raise FrameError("number")


def _clock(clock: tuple[int, ...]) -> None:
    if len(clock) > CLOCK_MAX:
        raise FrameError("number")
    _numbers(clock)


def _words(words: Iterable[str]) -> None:
    if any(len(word) > WORD_MAX for word in words):
        raise FrameError("number")


def _digest(value: int) -> None:
    if not 0 <= value < 1 << 64:
        raise FrameError("number")


def _in_range(fragment: int, fragments: int) -> None:
    if not 0 <= fragment < fragments:
        raise FrameError("fragment")
