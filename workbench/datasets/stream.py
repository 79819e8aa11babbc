"""Windows of bytes out of many files laid end to end, without reading the files whole."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from workbench.config import ConfigError

MAPPED_MAX = 128
"""Files mapped at one time; each holds a file descriptor."""


@dataclass(frozen=True)
class TextFile:
    """A file of the text, or the part of a single file that belongs to one split.

    Attributes
    ----------
    name, location : str
        Stable name, and where to open it.
    start, size : int
        First byte, and how many [bytes].
    split : str
        ``train`` or ``heldout``.
    """

    name: str
    location: str
    start: int
    size: int
    split: str


class Reader(Protocol):
    """Gives the bytes of a file."""

    def read(self, file: TextFile, offset: int, count: int) -> np.ndarray:
        """Bytes (count,) uint8 from ``offset`` on, counted from the file's own start."""


class MemoryReader:
    """Holds every file in memory: for many small files that fit there."""

    def __init__(self, contents: dict[str, np.ndarray]) -> None:
        self._contents = contents

    def read(self, file: TextFile, offset: int, count: int) -> np.ndarray:
        """Bytes (count,) uint8 from ``offset`` on."""
        begin = file.start + offset
        return self._contents[file.location][begin : begin + count]


class MappedReader:
    """Maps files as they are needed; the operating system keeps in memory what is used."""

    def __init__(self) -> None:
        self._maps: OrderedDict[str, np.memmap] = OrderedDict()

    def read(self, file: TextFile, offset: int, count: int) -> np.ndarray:
        """Bytes (count,) uint8 from ``offset`` on.

        Raises
        ------
        ConfigError
            The file is gone, or shorter than it was when the text was opened.
        """
        begin = file.start + offset
        found = self._map(file)[begin : begin + count]
        if len(found) < count:
            raise ConfigError(_changed(file, f"has fewer than {begin + count} bytes"))
        return found

    def _map(self, file: TextFile) -> np.memmap:
        mapped = self._maps.get(file.location)
        if mapped is None:
            try:
                mapped = np.memmap(file.location, dtype=np.uint8, mode="r")
            except (OSError, ValueError) as error:
                raise ConfigError(_changed(file, f"cannot be mapped ({error})")) from error
            self._maps[file.location] = mapped
            if len(self._maps) > MAPPED_MAX:
                self._maps.popitem(last=False)
        else:
            self._maps.move_to_end(file.location)
        return mapped


def _changed(file: TextFile, what: str) -> str:
    return (
        f"{file.location} {what}; expected {file.start + file.size} bytes as when the text was opened; "
        "leave the files alone during a run"
    )


class Stream:
    """Files laid end to end.

    Parameters
    ----------
    files : sequence of TextFile
    reader : Reader

    Attributes
    ----------
    files : tuple of TextFile
    size : int
        Bytes of all files together.
    """

    def __init__(self, files: Sequence[TextFile], reader: Reader) -> None:
        self.files = tuple(files)
        self._reader = reader
        ends = np.cumsum([file.size for file in self.files], dtype=np.int64)
        self._starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
        self.size = int(ends[-1]) if self.files else 0

    def windows(self, positions: np.ndarray, length: int) -> np.ndarray:
        """Bytes from each position on; a window may run on into the next file.

        Parameters
        ----------
        positions : array (window,), whole numbers from 0 to ``size - length``
        length : int

        Returns
        -------
        array (window, length), uint8
        """
        result = np.empty((len(positions), length), dtype=np.uint8)
        holders = np.searchsorted(self._starts, positions, side="right") - 1
        for row, position, holder in zip(result, positions.tolist(), holders.tolist(), strict=True):
            self._fill(row, position, holder)
        return result

    def _fill(self, row: np.ndarray, position: int, holder: int) -> None:
        filled = 0
        while filled < len(row):
            file = self.files[holder]
            offset = position + filled - int(self._starts[holder])
            count = min(file.size - offset, len(row) - filled)
            row[filled : filled + count] = self._reader.read(file, offset, count)
            filled += count
            holder += 1
