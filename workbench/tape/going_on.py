"""What a resume goes on from: a run's journal, its committed fragments if they are whole, else a snapshot.

PROTOCOL section 13: with intact slots nothing that was merged is lost; else, or when a snapshot is asked for,
everything goes back to it and the next epoch begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workbench.algorithms.schedule import offsets
from workbench.config import ConfigError, RunConfig, from_toml
from workbench.protocol import restart
from workbench.protocol.faults import NO_FAULTS
from workbench.protocol.plans import Rest, plan_of, rest_of
from workbench.protocol.records import Kind, Record
from workbench.protocol.settings import fixed_settings_of, settings_book_of
from workbench.tape.journal import read_journal
from workbench.tape.run_folder import RunFolder, being_written, open_run_folder
from workbench.training.snapshot_files import snapshots


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
    """

    folder: RunFolder
    config: RunConfig
    header: dict[str, Any]
    records: list[Record]
    merges: int
    versions: list[int]
    digests: list[int]


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
    if being_written(folder.path):
        raise ConfigError(f"{folder.path} goes on: its journal is being written; stop it first (workbench stop RUN)")
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
    return Resumable(folder, config, contents.header, contents.records, state.merges, state.versions, digests)


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
    """What is left of a run's plan of faults; without ``faults`` what acts on, and nothing of what was to come.

    Raises
    ------
    ConfigError
        The header tells a plan that cannot be read.
    """
    clock = str(found.header.get("clock"))
    plan = plan_of(found.header.get("faults") or {}, found.config, clock) if faults else NO_FAULTS
    rest = rest_of(plan, found.records, found.config, clock)
    return rest if faults else rest._replace(to_come=[])


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
