"""Frames of the journal and how they are read, whatever a crash or a hand did to the file's end.

A frame is 16 bytes of head (length of the payload, kind, three zero bytes, xxh3-64 of the payload
seeded with length and kind) and the payload in msgpack.  The first frame of a file is its header.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import xxhash

from workbench.protocol.records import Record
from workbench.tape.errors import TapeError, first_line

HEADER, RECORDS, INPUTS = 1, 2, 3
"""Kinds of frame: the journal's header, a batch of records, a batch of inputs."""

HEAD = struct.Struct("<IB3sQ")
MAGIC = "workbench-journal"
FORMAT = 1
FRAME_BYTES_MAX = 1 << 30
HEADER_BYTES_MAX = 64 << 20
SCAN_BYTES = 64 << 20
HASHED_BYTES = 256 << 20
"""Bytes behind a broken frame that are searched for a sound one, and those hashed for it."""

_KIND = re.compile(rb"(?=[\x02\x03]\0\0\0)")


class Input(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One input of a machine, kept so that the machine can be run again on it.

    Attributes
    ----------
    process, incarnation : int
        Whose machine, in which life.
    time_ns : int
        ``now`` as the machine was told it [ns].
    data : bytes
        The encoded input; the tape does not look inside.
    """

    process: int
    incarnation: int
    time_ns: int
    data: bytes


class JournalContents(NamedTuple):
    """What `read_journal` found.

    Attributes
    ----------
    header : dict
        The journal's first frame.
    records : list of Record
        In journal order.
    inputs : list of Input
        In journal order.
    positions : list of int
        For each input, how many of ``records`` stand before it.
    offset : int
        End of the last whole frame read [bytes]; where the next reading starts.
    dropped_bytes : int
        Bytes behind ``offset`` that are no whole frame.
    """

    header: dict[str, Any]
    records: list[Record]
    inputs: list[Input]
    positions: list[int]
    offset: int
    dropped_bytes: int


_records = msgspec.msgpack.Decoder(list[Record])
_inputs = msgspec.msgpack.Decoder(list[Input])
_header = msgspec.msgpack.Decoder(dict[str, Any])


def frame(kind: int, payload: bytes) -> bytes:
    """Bytes of one frame."""
    return HEAD.pack(len(payload), kind, b"\0\0\0", _checksum(kind, payload)) + payload


def _checksum(kind: int, payload: bytes | memoryview) -> int:
    return xxhash.xxh3_64_intdigest(payload, seed=len(payload) << 8 | kind)


def next_frame(buffer: memoryview, at: int) -> tuple[int, memoryview, int] | None:
    """Kind, payload and end of the frame at ``at``, or None if no whole, sound frame stands there."""
    if at + HEAD.size > len(buffer):
        return None
    length, kind, _, checksum = HEAD.unpack_from(buffer, at)
    end = at + HEAD.size + length
    if length > FRAME_BYTES_MAX or end > len(buffer):
        return None
    payload = buffer[at + HEAD.size : end]
    if _checksum(kind, payload) != checksum:
        return None
    return kind, payload, end


def read_journal(path: str | Path, offset: int = 0, limit_bytes: int | None = None) -> JournalContents:
    """Read a journal from ``offset`` (0, or an earlier reading's ``offset``) to its last whole frame.

    Nothing is allocated on the word of a length field: a frame must end inside the file.

    Parameters
    ----------
    path : path
        The journal.
    offset : int
        Where to start [bytes].
    limit_bytes : int, optional
        Read about so much and stop at a frame's end (at least one frame is read).

    Returns
    -------
    JournalContents

    Raises
    ------
    TapeError
        For a file that is no journal, a newer format, an offset that it does not reach, or damage before its
        last frame (a torn tail is no damage: `check_torn`).
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            header, first = _read_header(file, path, size)
            start = max(offset, first)
            if start > size:
                raise TapeError(f"{path} holds {size} bytes but is asked for what follows byte {start}; it was cut")
            return _read_frames(file, path, header, start, size, limit_bytes)
    except OSError as error:
        raise TapeError(f"{path} cannot be read as a journal: {error.strerror}") from error


def read_header(path: str | Path) -> dict[str, Any]:
    """Return the header of a journal (see `read_journal` for the errors)."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            return _read_header(file, path, file.seek(0, 2))[0]
    except OSError as error:
        raise TapeError(f"{path} cannot be read as a journal: {error.strerror}") from error


def _read_header(file: Any, path: Path, size: int) -> tuple[dict[str, Any], int]:
    file.seek(0)
    found = None
    head = file.read(HEAD.size)
    if len(head) == HEAD.size:
        length = HEAD.unpack(head)[0]
        if length <= min(HEADER_BYTES_MAX, size - HEAD.size):
            found = next_frame(memoryview(head + file.read(length)), 0)
    if found is None or found[0] != HEADER:
        raise TapeError(f"{path} is no journal of this workbench: its first {min(size, HEAD.size)} bytes are no header")
    header = _decode(_header, found[1], path)
    if header.get("magic") != MAGIC:
        raise TapeError(f"{path} is no journal of this workbench: its header lacks {MAGIC!r}")
    if header.get("format", 0) > FORMAT:
        raise TapeError(f"{path} has journal format {header['format']}, newer than {FORMAT}, the newest known here")
    return header, found[2]


def _read_frames(
    file: Any, path: Path, header: dict[str, Any], start: int, size: int, limit_bytes: int | None
) -> JournalContents:
    records: list[Record] = []
    inputs: list[Input] = []
    positions: list[int] = []
    available = size - start
    take = available if limit_bytes is None else min(available, limit_bytes)
    file.seek(start)
    buffer = memoryview(file.read(take))
    at = 0
    while True:
        found = next_frame(buffer, at)
        if found is None and at == 0 and take < (need := _needed(buffer)) <= available:
            # a first frame larger than the limit: it is inside the file, so reading it is bounded
            buffer = memoryview(bytes(buffer) + file.read(need - take))
            take = need
            continue
        if found is None:
            break
        kind, payload, at = found
        if kind == RECORDS:
            records.extend(_decode(_records, payload, path))
        elif kind == INPUTS:
            batch = _decode(_inputs, payload, path)
            inputs.extend(batch)
            positions.extend([len(records)] * len(batch))
    # a frame that the limit cut is judged by the next reading, which begins with it
    dropped = size - start - at if take == available or at == 0 else 0
    if dropped:
        check_torn(file, path, start + at, size)
    return JournalContents(header, records, inputs, positions, start + at, dropped)


def _needed(buffer: memoryview) -> int:
    """Bytes up to the end of the frame at the buffer's beginning, as its head says."""
    return HEAD.size + (HEAD.unpack_from(buffer, 0)[0] if len(buffer) >= HEAD.size else 0)


def check_torn(file: Any, path: Path, at: int, size: int) -> None:
    """Let a torn tail pass, and refuse damage; at ``at`` stands no whole, sound frame.

    A write that a crash cut leaves a last frame that reaches past the end of the file, a last frame with a wrong
    checksum, or zeros.  Anything else is damage: a whole frame with a wrong checksum and bytes behind it, or a
    sound frame behind a head that makes no sense (searched for in the next 64 MiB).

    Raises
    ------
    TapeError
        For damage: where it is, what follows, and what to do.
    """
    file.seek(at)
    buffer = memoryview(file.read(min(size - at, SCAN_BYTES)))
    if len(buffer) < HEAD.size:
        return
    length = HEAD.unpack_from(buffer, 0)[0]
    end = at + HEAD.size + length
    behind = _sound_frame(buffer)
    if behind is None and (length > FRAME_BYTES_MAX or end >= size or _only_zeros(buffer)):
        return
    found = f"a sound frame stands at byte {at + behind}" if behind is not None else f"its frame ends at byte {end}"
    raise TapeError(
        f"{path} is damaged at byte {at}: no sound frame there, but {found} and {size - at} bytes follow, so that this "
        f"is no write that a crash cut; put back a copy of the file, or keep what stands before the damage: "
        f"truncate -s {at} {path}"
    )


def _sound_frame(buffer: memoryview) -> int | None:
    """Offset of the first sound frame behind the first byte, searched with a bounded amount of work."""
    data, left = bytes(buffer), HASHED_BYTES
    starts = (match.start() - 4 for match in _KIND.finditer(data, 5))
    for start in starts:
        length = int.from_bytes(data[start : start + 4], "little")
        if start + HEAD.size + length > len(data) or length > left:
            continue
        left -= length
        if next_frame(buffer, start) is not None:
            return start
    return None


def _only_zeros(buffer: memoryview) -> bool:
    return not bytes(buffer).strip(b"\0")


def _decode(decoder: Any, payload: memoryview, path: Path) -> Any:
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TapeError(f"{path} holds a sound frame with unknown contents: {first_line(error)}") from error


def batches(items: Sequence[Record | Input]) -> list[tuple[int, list[Record | Input]]]:
    """Runs of items of one kind, in order, as (frame kind, items)."""
    runs: list[tuple[int, list[Record | Input]]] = []
    for item in items:
        kind = RECORDS if isinstance(item, Record) else INPUTS
        if not runs or runs[-1][0] != kind:
            runs.append((kind, []))
        runs[-1][1].append(item)
    return runs
