"""Lines of logs: JSON, checked one by one, sizes before anything is allocated for them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from workbench.tape.errors import TapeError
from workbench.tape.foreign.mapping import FILE, ISO, UNITS_NS, LogMap
from workbench.tape.journal import PROCESSES_MAX

FILES_MAX = 4096
FILE_BYTES_MAX = 1 << 30
LINE_BYTES_MAX = 1 << 20
"""Limits on what is read: files, bytes of all together, bytes of a line."""
NUMBER_MAX = 2**53
TIME_NS_MAX = 2**62
"""Largest step, sync or number of tokens, and time [ns]."""
NAME_MAX = 200


class Line(NamedTuple):
    """What a line reports.

    Attributes
    ----------
    file, number : int
        Which file, and which line of it, from 1.
    replica : str
    time_ns : int
        As the log has it, on the clock of who wrote it.
    step, tokens : int or None
        None: no step; 0 tokens where the log has none.
    loss : float
        NaN where the log has none.
    duration_ns : int
        -1 where the log has none.
    sync : int or None
    participants : tuple of str or None
        None where the log does not list them.
    """

    file: int
    number: int
    replica: str
    time_ns: int
    step: int | None
    tokens: int
    loss: float
    duration_ns: int
    sync: int | None
    participants: tuple[str, ...] | None


class Counts(NamedTuple):
    """Lines of a file that were read, that report neither step nor sync, and that a crash cut (0 or 1)."""

    lines: int
    skipped: int
    torn: int


def check_files(files: Sequence[Path]) -> None:
    """Refuse files that cannot be logs, before any is read.

    Raises
    ------
    TapeError
        Too many, too large, missing, or no regular file.
    """
    if len(files) > FILES_MAX:
        raise TapeError(f"{len(files)} logs; allowed: up to {FILES_MAX}")
    total = 0
    for path in files:
        if not path.is_file():
            what = "it is no regular file" if path.exists() else "there is no such file"
            raise TapeError(f"{path} cannot be read as a log: {what}")
        total += path.stat().st_size
    if total > FILE_BYTES_MAX:
        raise TapeError(f"the logs have {total:,} bytes; allowed: up to {FILE_BYTES_MAX:,}")


def read_log(path: Path, file: int, log_map: LogMap) -> tuple[list[Line], Counts]:
    """Lines of one log that report a step or a sync.

    Raises
    ------
    TapeError
        A bad line: its file and number, what stands there and what was expected.
    """
    found, lines, skipped, torn = [], 0, 0, 0
    with path.open("rb") as stream:
        for number, raw in _raw_lines(stream, path):
            if not raw.strip():
                continue
            lines += 1
            reader = _Reader(path, file, number, log_map)
            try:
                line = reader.line(raw)
            except _NotJson as error:
                if raw.endswith(b"\n"):
                    reader.bad(str(error), "a JSON object on one line")
                torn += 1
                continue
            if line is None:
                skipped += 1
            else:
                found.append(line)
    return found, Counts(lines, skipped, torn)


def _raw_lines(stream: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    while raw := stream.readline(LINE_BYTES_MAX + 1):
        number += 1
        if len(raw) > LINE_BYTES_MAX:
            raise TapeError(f"{path}, line {number}: more than {LINE_BYTES_MAX:,} bytes; expected shorter lines")
        yield number, raw


class _NotJson(ValueError):
    """A line that is no JSON object."""


class _Reader:
    """Reads one line."""

    def __init__(self, path: Path, file: int, number: int, log_map: LogMap) -> None:
        self.path, self.file, self.number, self.map = path, file, number, log_map
        self.data: dict[str, Any] = {}

    def bad(self, found: str, expected: str) -> NoReturn:
        raise TapeError(f"{self.path}, line {self.number}: {found}; expected {expected}")

    def line(self, raw: bytes) -> Line | None:
        self.data = self._decoded(raw)
        is_sync, is_step = self._is_sync(), self._is_step()
        if not is_sync and not is_step:
            return None
        return Line(
            self.file,
            self.number,
            self._replica(),
            self._time_ns(),
            self._whole(self.map.step, "the number of a step") if is_step else None,
            self._whole(self.map.tokens, "a number of tokens") if is_step and self._has(self.map.tokens) else 0,
            self._real(self.map.loss, "a loss") if is_step and self._has(self.map.loss) else math.nan,
            self._duration_ns() if is_step else -1,
            self._whole(self.map.sync, "the number of a sync") if is_sync else None,
            self._participants() if is_sync else None,
        )

    def _decoded(self, raw: bytes) -> dict[str, Any]:
        try:
            found = json.loads(raw)
        except UnicodeDecodeError as error:
            raise _NotJson("no UTF-8 text") from error
        except RecursionError as error:
            raise _NotJson("tables nested too deep") from error
        except ValueError as error:
            raise _NotJson(f"no JSON ({str(error)[:80]})") from error
        if not isinstance(found, dict):
            raise _NotJson(f"a JSON {type(found).__name__}")
        return found

    def _get(self, path: str) -> Any:
        value: Any = self.data
        if path in self.data:
            return self.data[path]
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def _has(self, path: str) -> bool:
        return bool(path) and self._get(path) is not None

    def _is_step(self) -> bool:
        return self._has(self.map.step) and self._holds(self.map.step_when)

    def _is_sync(self) -> bool:
        if not self._has(self.map.sync) or not self._holds(self.map.sync_when):
            return False
        return not self.map.committed or bool(self._get(self.map.committed))

    def _holds(self, wanted: Any) -> bool:
        return all(self._get(path) == value for path, value in wanted.items())

    def _replica(self) -> str:
        if self.map.replica == FILE:
            return self.path.stem
        return self._name(self._get(self.map.replica), self.map.replica)

    def _name(self, value: Any, path: str) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value) or len(str(value)) > NAME_MAX:
            self.bad(f"{path} is {_short(value)}", "the name or number of a replica")
        return str(value)

    def _number(self, path: str, what: str) -> float:
        value = self._get(path)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.bad(f"{path} is {_short(value)}", what)
        return value

    def _whole(self, path: str, what: str) -> int:
        value = self._number(path, what)
        if not 0 <= value <= NUMBER_MAX or value != int(value):
            self.bad(f"{path} is {_short(value)}", f"{what}, whole, from 0 to {NUMBER_MAX}")
        return int(value)

    def _real(self, path: str, what: str) -> float:
        try:
            return float(self._number(path, what))
        except OverflowError:
            return math.inf

    def _duration_ns(self) -> int:
        if not self._has(self.map.duration):
            return -1
        found = self._real(self.map.duration, "a length of time") * UNITS_NS[self.map.duration_unit]
        if not 0 <= found < TIME_NS_MAX:
            self.bad(f"{self.map.duration} is {_short(self._get(self.map.duration))}", "a length of time, from 0")
        return round(found)

    def _time_ns(self) -> int:
        path, value = self.map.time, self._get(self.map.time)
        if self.map.time_unit == ISO:
            return self._iso_ns(value)
        found = self._real(path, f"a time in {self.map.time_unit}") * UNITS_NS[self.map.time_unit]
        if not abs(found) < TIME_NS_MAX:
            self.bad(f"{path} is {_short(value)}", f"a time in {self.map.time_unit}")
        return round(found)

    def _iso_ns(self, value: Any) -> int:
        try:
            found = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            self.bad(f"{self.map.time} is {_short(value)}", "a time such as 2026-01-31T12:00:00.5Z")
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        since = found - datetime(1970, 1, 1, tzinfo=UTC)
        return ((since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds) * 1000

    def _participants(self) -> tuple[str, ...] | None:
        path = self.map.participants
        if not path:
            return None
        value = self._get(path)
        if not isinstance(value, list) or not 0 < len(value) <= PROCESSES_MAX:
            self.bad(f"{path} is {_short(value)}", "a list of replicas, of one at least")
        names = tuple(self._name(each, path) for each in value)
        if len(set(names)) < len(names):
            self.bad(f"{path} is {_short(value)}", "each replica once")
        return names


def _short(value: Any) -> str:
    if value is None:
        return "missing"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
