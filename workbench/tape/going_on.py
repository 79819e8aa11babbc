"""What a resume goes on from: a run's journal, its committed fragments if they are whole, else a snapshot.

PROTOCOL section 13: with intact slots nothing that was merged is lost; else, or when a snapshot is asked for,
everything goes back to it and the next epoch begins.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.algorithms.schedule import offsets
from workbench.config import ConfigError, RunConfig, from_toml
from workbench.protocol import restart
from workbench.protocol.faults import NO_FAULTS
from workbench.protocol.plans import Rest, plan_of, rest_of, without
from workbench.protocol.records import Kind, Record
from workbench.protocol.settings import fixed_settings_of, settings_book_of
from workbench.tape.journal import read_journal
from workbench.tape.lock import held, holder
from workbench.tape.run_folder import RunFolder, being_written, open_run_folder
from workbench.training.snapshot_files import snapshots

if TYPE_CHECKING:
    from workbench.datasets import Text

ORPHANS_LIMIT_S = 10.0
"""For so long processes whose supervisor was killed are given to end by themselves."""


class Resumable(NamedTuple):
    """A run that has ended, or was lost, before its last merge.

    Attributes
    ----------
    folder : RunFolder
    config : RunConfig
    header : dict
        Of the journal.
    records : list of Record
    merges : int
        Done.
    versions, digests : list of int
        Version of each fragment, and xxh3-64 of it (0 for the first weights).
    offset : int
        Length of the journal up to its last whole frame [bytes].
    """

    folder: RunFolder
    config: RunConfig
    header: dict[str, Any]
    records: list[Record]
    merges: int
    versions: list[int]
    digests: list[int]
    offset: int


def resumable(run: str | Path) -> Resumable:
    """Look at a run that somebody wants to go on.

    Raises
    ------
    TapeError
        There is no such run, or its journal cannot be read.
    ConfigError
        It goes on already, or never began.
    """
    folder = open_run_folder(run)
    if not _is_let_go(folder):
        writer = holder(folder.supervisor_lock) or holder(folder.journal_lock) or "that is about to end"
        raise ConfigError(f"{folder.path} goes on: process {writer} writes it; stop it first (workbench stop RUN)")
    if not folder.journal.exists():
        raise ConfigError(f"{folder.path} holds no journal, only a tape; expected the folder of a training run")
    contents = read_journal(folder.journal)
    if not contents.header.get("config"):
        raise ConfigError(f"{folder.path} holds no configuration; expected the folder of a training run")
    if not contents.records:
        raise ConfigError(f"{folder.path} ended before it began; train it anew (workbench train)")
    config = from_toml(contents.header["config"])
    fixed = fixed_settings_of(config, offsets(config.fragments, config.period))
    state = restart.restore(fixed, settings_book_of(config), contents.records).state
    digests = _digests(contents.records, state.versions)
    header, records = contents.header, contents.records
    return Resumable(folder, config, header, records, state.merges, state.versions, digests, contents.offset)


def _is_let_go(folder: RunFolder) -> bool:
    """Whether nobody writes the journal; what a supervisor that was killed has left is given some seconds to end.

    The tape's writer is one of them: it closes the tape once the journal is let go.
    """
    until = time.monotonic() + ORPHANS_LIMIT_S
    orphaned = folder.supervisor_lock.exists() and not held(folder.supervisor_lock)
    while orphaned and time.monotonic() < until and (being_written(folder.path) or held(folder.tape_lock)):
        time.sleep(0.1)
    return not being_written(folder.path)


def check_text(found: Resumable, text: Text) -> None:
    """Refuse a text that is not that of the run.

    Raises
    ------
    ConfigError
    """
    manifest = [asdict(entry) | {"digest": f"{entry.digest:016x}"} for entry in text.manifest]
    if manifest != found.header["data_manifest"]:
        raise ConfigError(f"the text is not that which {found.folder.path} was trained on; expected the same bytes")


def set_tape_aside(found: Resumable) -> str:
    """Set a tape aside that holds more than the journal, which somebody, or the loss of power, has cut.

    The next is laid anew from the journal.

    Returns
    -------
    str
        One line about it, empty if there was nothing to do.
    """
    from workbench.tape import store  # what reads a tape is heavy, and the syncer reads this module

    tape = found.folder.tape
    if not tape.exists():
        return ""
    reach = int(store.root_attributes(store.open_repository(tape), tape)["journal_offset"])
    if reach <= found.offset:
        return ""
    aside = next(path for n in count(1) if not (path := tape.with_name(f"tape.ahead-{n}")).exists())
    tape.rename(aside)
    return f"the journal was cut: {tape} held {reach - found.offset} bytes of it more; it is {aside.name} now"


def _digests(records: list[Record], versions: list[int]) -> list[int]:
    merged = {(r.fragment, r.version): r.digest for r in records if r.kind == Kind.MERGED}
    return [merged.get((p, version), 0) for p, version in enumerate(versions)]


def snapshot_numbers(found: Resumable) -> list[int]:
    """Snapshots that a resume can go back to, ascending: complete, on disk, of what counts now."""
    there = snapshots(found.folder.snapshots)
    return [number for number in there if restart.cut_of(found.records, number) is not None]


def cut_for(found: Resumable, snapshot: int | None, intact: bool) -> dict[str, Any] | None:
    """Where a resume goes back to, None if it goes on from the committed fragments.

    Parameters
    ----------
    found : Resumable
    snapshot : int, optional
        The one that is asked for.
    intact : bool
        Whether the committed fragments are those that the journal names.

    Raises
    ------
    ConfigError
        There is no such snapshot, nothing to go on from, or nothing left to do.
    """
    numbers = snapshot_numbers(found)
    if snapshot is None and intact:
        if found.merges >= found.config.rounds:
            raise ConfigError(
                f"{found.folder.path} has done all of its {found.config.rounds} merges: nothing is left to go on with"
            )
        return None
    if snapshot is not None and snapshot not in numbers:
        listed = ", ".join(map(str, numbers)) or "none"
        raise ConfigError(f"there is no snapshot {snapshot} in {found.folder.path}; there are: {listed}")
    if not numbers:
        raise ConfigError(
            f"{found.folder.path} cannot go on: its committed fragments are not those of the journal, and there is no "
            "snapshot; train it anew"
        )
    return restart.cut_of(found.records, numbers[-1] if snapshot is None else snapshot)


def rest_for(found: Resumable, faults: bool = True) -> Rest:
    """What is left of a run's plan of faults; without ``faults`` what lasted is over, and nothing is to come.

    Raises
    ------
    ConfigError
        The header tells a plan that cannot be read.
    """
    clock = str(found.header.get("clock"))
    plan = plan_of(found.header.get("faults") or {}, found.config, clock) if faults else NO_FAULTS
    rest = rest_of(plan, found.records, found.config, clock)
    return rest if faults else without(rest)


def merged_tokens(records: Iterable[Record], fragments: int, cut: dict[str, Any] | None = None) -> list[int]:
    """Tokens merged into each fragment, without what a resume rolled back, the one to ``cut`` included."""
    merged: list[list[tuple[int, int]]] = [[] for _ in range(fragments)]

    def go_back(versions: Sequence[int]) -> None:
        for p, version in enumerate(versions):
            merged[p] = [(v, tokens) for v, tokens in merged[p] if v <= version]

    for record in records:
        if record.kind == Kind.MERGED:
            merged[record.fragment].append((record.version, record.tokens))
        elif record.kind == Kind.SYNCER_STARTED and record.detail.get("cut"):
            go_back(record.detail["cut"]["versions"])
    if cut is not None:
        go_back(cut["versions"])
    return [sum(tokens for _, tokens in found) for found in merged]
