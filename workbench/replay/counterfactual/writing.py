"""The run folder of a counterfactual: an ordinary one, whose header names its parent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.algorithms.digest import digest
from workbench.config import RunConfig, to_toml
from workbench.protocol.records import Record
from workbench.replay.counterfactual.parent import Parent
from workbench.tape import Input, JournalWriter, Recorder, create_run_folder
from workbench.tape.errors import is_full, no_room
from workbench.tape.taken import check_free
from workbench.training.program import TrainingProgram
from workbench.training.run_header import run_header

RUNS = Path("runs")
"""Folder of counterfactuals that were given no other."""


def free_folder() -> Path:
    """The next free folder for a counterfactual."""
    return next(path for n in range(1, 10**9) if not (path := RUNS / f"what-if-{n}").exists())


def checked_folder(path: Path) -> Path:
    """A folder that is free for a run.

    Raises
    ------
    ConfigError
        It holds something.
    """
    check_free(path)
    return path


@contextmanager
def answering(out: Path) -> Iterator[list[Path]]:
    """Leave whole answers alone behind where Ctrl-C or a full disk ends a question: asked again it gives the same.

    Parameters
    ----------
    out : Path
        Folder of the answer, free.

    Yields
    ------
    list of Path
        To be told which children are whole.

    Raises
    ------
    KeyboardInterrupt
    StorageFull
        With what is left.
    """
    existed, whole = out.exists(), list[Path]()
    try:
        yield whole
    except BaseException as error:
        full = is_full(error)
        if not full and not isinstance(error, KeyboardInterrupt):
            raise
        _remove_begun(out, whole, existed)
        left = f"whole are {', '.join(map(str, whole))}, what else was begun is removed" if whole else GONE
        raise (no_room(f"the answer in {out}", left) if full else KeyboardInterrupt(f"interrupted; {left}")) from error


GONE = "what was begun of the answer is removed"


def _remove_begun(out: Path, whole: Sequence[Path], existed: bool) -> None:
    if not out.is_dir() or out in whole:
        return
    for each in out.iterdir():
        if each.is_dir() and each not in whole:
            shutil.rmtree(each)
        elif not each.is_dir():
            each.unlink()
    if not existed and not whole:
        out.rmdir()


def parent_of(parent: Parent, event: int | None, kind: str, shared: int, recomputed: bool) -> dict[str, Any]:
    """What the header of a counterfactual says of its parent, and of what it shares with that."""
    return {
        "run_id": parent.header["run_id"],
        "path": parent.path,
        "generation": parent.generation + 1,
        "event": event,
        "class": kind,
        "shared_events": shared,
        "recomputed": recomputed,
    }


def header_of(
    parent: Parent, config: RunConfig, program: TrainingProgram, clock: str, lineage: Mapping[str, Any]
) -> dict[str, Any]:
    """Facts of a counterfactual; ``lineage`` says what it has from its parent, and is part of its identity."""
    made = run_header(config, program.text, program, clock, parent.header["faults"])
    own = f"{made['run_id']} {sorted(lineage.items())!r}"
    return {**made, "run_id": f"{digest(own.encode()):016x}-{made['run_id'][-8:]}", "parent": dict(lineage)}


class RunWriter:
    """Journal and tape of a counterfactual.

    Parameters
    ----------
    out : Path
        Folder of the run; refused if it holds anything.
    config : RunConfig
    header : dict
        From `header_of`.
    """

    def __init__(self, out: Path, config: RunConfig, header: dict[str, Any]) -> None:
        self.folder = create_run_folder(out, to_toml(config))
        self._journal = JournalWriter(self.folder.journal, header)

    def take(self, log: Sequence[tuple[list[Input], list[Record]]]) -> None:
        """Append what belongs together, in order."""
        for inputs, records in log:
            self._journal.append([*inputs, *records])

    def append(self, inputs: list[tuple[int, int, int, bytes]], records: list[Record]) -> None:
        """One write of a world: the inputs of the machine and the records that follow from them."""
        self._journal.append([*(Input(*item) for item in inputs), *records])

    def close(self, complete: bool = True) -> None:
        """Everything onto the tape, which is closed if the run came to its end."""
        self._journal.close()
        recorder = Recorder(self.folder)
        if complete:
            recorder.close()
        else:
            recorder.drain()
            recorder.release()

    def release(self) -> None:
        """After an error: the lock is given back, the journal stays."""
        self._journal.close()
