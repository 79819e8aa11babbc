"""Errors of the tape: one clear line each, whatever library below failed."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class TapeError(ValueError):
    """A tape, journal or run folder that cannot be read or written as asked."""


class StorageFull(TapeError):
    """Nothing more can be written; what is there is whole, and writing may go on when space is back."""


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of the operating system that mean that nothing more can be written."""


def no_room(what: str | Path, remark: str = "") -> StorageFull:
    """Error of a full disk: what was being written, what has become of it, and what to do.

    Parameters
    ----------
    what : str or path
        What was being written, with its path.
    remark : str
        What is left of it.
    """
    return StorageFull(
        f"no room for {what}: the disk is full{f'; {remark}' if remark else ''}; free space there, or give a place on "
        "another disk with --out"
    )


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that it was raised from, means that nothing more can be written."""
    while error is not None:
        if isinstance(error, StorageFull) or (isinstance(error, OSError) and error.errno in FULL):
            return True
        error = error.__cause__
    return False


def first_line(error: BaseException) -> str:
    """First line of an error's text; the libraries below print whole call stacks."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__


def damaged(path: str | Path, what: str) -> TapeError:
    """Error of a tape that is not as it was written: what is wrong, and what to do.

    Parameters
    ----------
    path : path
        The tape's folder.
    what : str
        What is wrong with it.
    """
    return TapeError(f"{path} is damaged: {what}; {remedy(path)}")


def remedy(path: str | Path) -> str:
    """What to do about a damaged tape: lay it anew if its journal is beside it."""
    tape = Path(path)
    if (tape.parent / "journal").is_file():
        return f"delete the folder (rm -r {tape}) and open {tape.parent} again: its journal makes the tape anew"
    return "put back a copy of it: there is no journal beside it that could make it anew"


@contextmanager
def reading(what: str | Path) -> Iterator[None]:
    """Turn whatever a store raises while ``what`` is read into a `TapeError`.

    Icechunk raises its own errors for a missing or torn file, zstd a `RuntimeError` for altered bytes,
    and zarr a `ValueError`, `KeyError` or `TypeError` for altered metadata; a panic in the
    compiled part arrives as a bare `BaseException`.
    """
    try:
        yield
    except TapeError:
        raise
    except MemoryError as error:
        raise TapeError(f"{what} holds an array that does not fit into memory") from error
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise TapeError(
            f"{what} is damaged, or was compacted since it was opened: {_in_words(error)}; open it again, and if it "
            f"says the same, {remedy(what)}"
        ) from error


WORDS = {
    "decompress": "compressed data of an array are not as they were written",
    "requested range was invalid": "a file of it is shorter than it was",
    "object not found": "a file of it is missing",
}
"""What damage the libraries below speak of, by a part of their own words."""


def _in_words(error: BaseException) -> str:
    """What an error of the libraries below means; their own words where they say it."""
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return "the metadata of an array is no JSON"
    if isinstance(error, KeyError):
        return f"the metadata of an array lacks {first_line(error)}"
    text = first_line(error)
    return next((words for part, words in WORDS.items() if part in text.lower()), text)
