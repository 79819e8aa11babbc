"""The append-only journal of a run: log before effect (PROTOCOL section 6).

Examples
--------
>>> import tempfile, pathlib
>>> from workbench.protocol.records import Kind, Record
>>> path = pathlib.Path(tempfile.mkdtemp()) / "journal"
>>> with JournalWriter(path, {"run_id": "r1"}) as journal:
...     end = journal.append([Record(Kind.SYNCER_STARTED, process=0, incarnation=0, seq=1, time_ns=0)])
>>> read_journal(path).records[0].seq
1
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from workbench.protocol.records import Record
from workbench.tape.errors import StorageFull, TapeError, first_line
from workbench.tape.frames import (
    FORMAT,
    FRAME_BYTES_MAX,
    HEADER,
    HEADER_BYTES_MAX,
    MAGIC,
    Input,
    JournalContents,
    batches,
    frame,
    read_header,
    read_journal,
)
from workbench.tape.lock import FileLock

__all__ = ["Input", "JournalContents", "JournalWriter", "read_header", "read_journal"]

PROCESSES_MAX = 4096 + 64
"""Most processes of a run (learners 4096): a larger number in a record is refused, not allocated for."""

# one C call that checks the range of every column of a record
_COLUMNS = struct.Struct("<hiiqqiiqqqqqqqdQqi")


class JournalWriter:
    """Append to a run's journal; each `append` is one ``write``.

    What an `append` that returned has written survives a SIGKILL at any later moment.  Power loss is
    another matter: ``fsync=True`` waits for the disk after every append.

    Parameters
    ----------
    path : path
        The journal; created (mode 0600) with ``header`` as its first frame, or continued behind its
        last whole frame.
    header : mapping
        Facts of the run: ``run_id``, ``config``, ``seeds``, ``code_version``, ``manifest``, ….  Of a
        journal that exists only ``run_id`` is compared.
    fsync : bool
        Wait for the disk after every append.

    Raises
    ------
    TapeError
        When another writer lives (with its process id), or the file is of another run or no journal.
    StorageFull
        When there is no room for the header.
    """

    def __init__(self, path: str | Path, header: Mapping[str, Any] | None = None, *, fsync: bool = False) -> None:
        self.path = Path(path)
        self._fsync = fsync
        self._fd = -1
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
        self._lock = FileLock(self.path.with_name(self.path.name + ".lock"), f"the journal {self.path}")
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.dropped_bytes = 0
            if os.fstat(self._fd).st_size == 0:
                self._begin(dict(header or {}))
            else:
                self._continue(header or {})
        except BaseException:
            self.close()
            raise

    def _begin(self, header: dict[str, Any]) -> None:
        self.header = {**header, "magic": MAGIC, "format": FORMAT}
        payload = self._encode(self.header)
        if len(payload) > HEADER_BYTES_MAX:
            raise TapeError(f"the journal's header has {len(payload)} bytes; allowed: up to {HEADER_BYTES_MAX}")
        self.offset = 0
        self._write(frame(HEADER, payload))

    def _continue(self, header: Mapping[str, Any]) -> None:
        contents = read_journal(self.path)
        self.header, self.offset, self.dropped_bytes = contents.header, contents.offset, contents.dropped_bytes
        wanted, found = header.get("run_id"), self.header.get("run_id")
        if wanted is not None and wanted != found:
            raise TapeError(f"{self.path} is the journal of run {found!r}, not of {wanted!r}; take a new run folder")
        if self.dropped_bytes:
            self._set_aside()
            os.ftruncate(self._fd, self.offset)

    def _set_aside(self) -> None:
        """Keep the cut tail beside the journal: a torn frame is worthless, a damaged file is not."""
        tail = self.path.with_name(f"{self.path.name}.cut-{self.offset}")
        fd = os.open(tail, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.sendfile(fd, self._fd, self.offset, self.dropped_bytes)
        except OSError:
            pass  # a full disk must not keep the run from going on
        finally:
            os.close(fd)

    def append(self, items: Sequence[Record | Input]) -> int:
        """Append records and inputs, all or none of them, in one write.

        Returns
        -------
        int
            The journal's length [bytes].

        Raises
        ------
        TapeError
            For an item that the tape's columns cannot hold; nothing is written.
        StorageFull
            When the disk has no room; the journal is cut back to its last whole frame and usable again.
        """
        if not items:
            return self.offset
        for item in items:
            _check(item)
        parts = [frame(kind, self._encode(run)) for kind, run in batches(items)]
        if max(map(len, parts)) > FRAME_BYTES_MAX:
            raise TapeError(f"one append of {max(map(len, parts))} bytes; allowed: up to {FRAME_BYTES_MAX}, split it")
        return self._write(b"".join(parts))

    def _encode(self, value: Any) -> bytes:
        try:
            return self._encoder.encode(value)
        except (TypeError, OverflowError, UnicodeEncodeError) as error:
            raise TapeError(f"the journal cannot hold this: {first_line(error)}") from error

    def _write(self, data: bytes) -> int:
        if self._fd < 0:
            raise TapeError(f"the journal {self.path} is closed")
        try:
            written = os.pwrite(self._fd, data, self.offset)
            reason = f"{written} of {len(data)} bytes written"
        except OSError as error:
            written, reason = 0, error.strerror or str(error)
        if written != len(data):
            os.ftruncate(self._fd, self.offset)
            raise StorageFull(
                f"no room for {len(data)} bytes in {self.path} ({reason}); it is whole up to byte {self.offset}, and "
                "read up to there; free space there before more is written"
            )
        if self._fsync:
            os.fsync(self._fd)
        self.offset += written
        return self.offset

    def close(self) -> None:
        """Release file and lock; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._lock.release()

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check(item: Record | Input) -> None:
    if isinstance(item, Input):
        if not (0 <= item.process < PROCESSES_MAX and isinstance(item.data, bytes)):
            raise TapeError(f"input of process {item.process}: expected 0 to {PROCESSES_MAX - 1} and bytes as data")
        return
    r = item
    try:
        _COLUMNS.pack(
            r.kind, r.process, r.incarnation, r.seq, r.time_ns, r.peer, r.fragment, r.round, r.version, r.base_version,
            r.step, r.global_step, r.steps, r.tokens, r.value, r.digest, r.setting, r.epoch,
        )  # fmt: skip
        if r.cause is not None:
            _COLUMNS.pack(0, r.cause[0], 0, r.cause[1], *(0,) * 14)
        struct.pack(f"<{len(r.clock)}q", *r.clock)
    except (struct.error, TypeError) as error:
        raise TapeError(f"{r} cannot be recorded: {error}") from error
    if not (isinstance(r.reason, str) and isinstance(r.detail, dict) and all(isinstance(k, str) for k in r.detail)):
        raise TapeError(f"{r} cannot be recorded: reason must be text, detail a table with texts as keys")
    if not 0 <= r.process < PROCESSES_MAX or len(r.clock) > PROCESSES_MAX:
        raise TapeError(
            f"record of process {r.process} with {len(r.clock)} clock entries; allowed: up to {PROCESSES_MAX}"
        )


def _plain(value: Any) -> Any:
    """Numpy scalars and arrays as plain numbers and lists; nothing else is taken."""
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} has no place in a journal; give numbers, text, lists or tables")
