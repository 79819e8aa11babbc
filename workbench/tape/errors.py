"""Errors of the tape: one clear line each, whatever library below failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class TapeError(ValueError):
    """A tape, journal or run folder that cannot be read or written as asked."""


class StorageFull(TapeError):
    """Nothing more can be written; what is there is whole, and writing may go on when space is back."""


def first_line(error: BaseException) -> str:
    """First line of an error's text; the libraries below print whole call stacks."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__


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
            f"{what} is damaged or was compacted since it was opened ({first_line(error)}); open it again, "
            f"or lay it anew from the run's journal: workbench.tape.rebuild_tape(RUN)"
        ) from error
