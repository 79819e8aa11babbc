"""`import_logs`: a tape from the event logs of another trainer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import xxhash

from workbench.algorithms.digest import digest
from workbench.tape.foreign.history import History, history_of
from workbench.tape.foreign.mapping import ISO, LogMap, load_map
from workbench.tape.foreign.reading import Counts, Line, check_files, read_log
from workbench.tape.foreign.telling import records_of
from workbench.tape.journal import JournalWriter
from workbench.tape.recorder import Recorder
from workbench.tape.run_folder import create_run_folder

BATCH = 4096
"""Records of one write."""
DERIVED = "derived"
"""Attribute ``clocks`` of a tape whose clocks were derived from what a log proves."""
NOTES = (
    "clocks: a replica's lines in the order of their times; a sync behind its participants' steps before it, and "
    "before their next; syncs by their numbers; all else is concurrent",
    "participation: a replica counts as there from the first to the last line of each of its lives",
    "staleness: steps since the replica's last sync; versions only where it took part in the sync before",
)
"""What holds of every imported tape."""
_ROUNDS = "a log of syncs has no openings, quorums and grace windows of rounds"
_NONE = "the log holds no validation loss"
_GEOMETRY = "the log holds no weights and no norms"
_UNTOLD = {
    "rounds": _ROUNDS,
    "breakdown": _ROUNDS,
    "merge_availability": _ROUNDS,
    "behind": "what a replica received from syncs that it took no part in is not in the log",
    "effective_period": "the period that was asked for is not in the log; steps between syncs: staleness()",
    "geometry": _GEOMETRY,
    "validation_curve": _NONE,
    "efficiency": _NONE,
    "tokens_to": _NONE,
}
_NO_DURATIONS = "no line says how long its step took; map one: duration = FIELD"
_NO_TOKENS = "no line says how many tokens its step had; map one: tokens = FIELD"
_OF_DURATIONS = ("goodput", "uptime")
_OF_TOKENS = ("ledger", "merged_share", "token_fates", "token_fates_by_round", "tokens_by_reason")


class Imported(NamedTuple):
    """What was made of logs.

    Attributes
    ----------
    path : Path
        The run's folder.
    replicas : tuple of str
        Their names; learner m is the m-th.
    steps, syncs, events : int
    lines, skipped, torn : int
        Read; reporting neither step nor sync; cut off by a crash at the end of a file.
    placed_by_time : int
        Participants of syncs that do not report them themselves: placed by their time stamps.
    untold : dict of str to str
        Tables that the tape cannot give, and why.
    """

    path: Path
    replicas: tuple[str, ...]
    steps: int
    syncs: int
    events: int
    lines: int
    skipped: int
    torn: int
    placed_by_time: int
    untold: dict[str, str]


def import_logs(files: Sequence[str | Path], log_map: LogMap | str | Path, out: str | Path) -> Imported:
    """Make a tape of another trainer's event logs.

    The logs are JSON lines; each tells one replica's step, or a committed sync with its participants.  Clocks are
    derived from what that proves, and the tape says so (attribute ``clocks``); what it cannot tell stands in its
    attribute ``untold``.  Read it with `workbench.open_tape`.

    Parameters
    ----------
    files : sequence of path
        Logs, in any order.
    log_map : LogMap or path
        Fields of the lines by what they mean: see `workbench.tape.foreign.mapping.KEYS`.
    out : path
        Folder of the run; refused if it holds anything.

    Raises
    ------
    TapeError
        A file or a line that cannot be read, with what was expected; lines that contradict each other.
    ConfigError
        A map or a folder that cannot be used.
    """
    wanted = log_map if isinstance(log_map, LogMap) else load_map(log_map)
    paths = [Path(file) for file in files]
    check_files(paths)
    lines: list[Line] = []
    counts: list[Counts] = []
    for number, path in enumerate(paths):
        found, counted = read_log(path, number, wanted)
        lines += found
        counts.append(counted)
    history = history_of(lines, paths)
    header = _header(paths, counts, wanted, history)
    events = _write(Path(out), header, history)
    about = header["imported"]
    return Imported(
        Path(out), tuple(about["replicas"]), about["steps"], about["syncs"], events, sum(c.lines for c in counts),
        about["skipped_lines"], about["torn_lines"], about["placed_by_time"], header["untold"],
    )  # fmt: skip


def _header(paths: list[Path], counts: list[Counts], log_map: LogMap, history: History) -> dict[str, Any]:
    sources = [
        {
            "path": str(path),
            "bytes": path.stat().st_size,
            "digest": _digest(path),
            "lines": c.lines,
        }
        for path, c in zip(paths, counts, strict=True)
    ]
    mapped = {name: value for name, value in vars(log_map).items() if value}
    identity = digest(repr([sources, mapped]).encode())
    first = min(step.time_ns for program in history.programs for step in program.steps) if _steps(history) else 0
    return {
        "run_id": f"import-{identity:016x}",
        "clock": "imported",
        "clocks": DERIVED,
        "config": "",
        "parent": None,
        "faults": {"chaos": "", "scenario": ""},
        "imported": {
            "files": sources,
            "map": {name: dict(value) if isinstance(value, dict) else value for name, value in mapped.items()},
            "replicas": [program.name for program in history.programs],
            "steps": _steps(history),
            "syncs": len(history.syncs),
            "skipped_lines": sum(c.skipped for c in counts),
            "torn_lines": sum(c.torn for c in counts),
            "placed_by_time": sum(sync.placed for sync in history.syncs),
            "first_time": datetime.fromtimestamp(first // 10**9, UTC).isoformat()
            if log_map.time_unit == ISO
            else first / 1e9,
            "notes": list(NOTES),
        },
        "untold": _untold(history),
    }


def _digest(path: Path) -> str:
    """xxh3-64 of a file, in hexadecimal."""
    found = xxhash.xxh3_64()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def _steps(history: History) -> int:
    return sum(len(program.steps) for program in history.programs)


def _untold(history: History) -> dict[str, str]:
    steps = [step for program in history.programs for step in program.steps]
    found = dict(_UNTOLD)
    if not steps or any(step.duration_ns < 0 for step in steps):
        found |= dict.fromkeys(_OF_DURATIONS, _NO_DURATIONS)
    if not any(step.tokens for step in steps):
        found |= dict.fromkeys(_OF_TOKENS, _NO_TOKENS)
    return found


def _write(out: Path, header: dict[str, Any], history: History) -> int:
    folder = create_run_folder(out, "# imported from the logs of another trainer: there is no configuration\n")
    events, records = 0, records_of(history)
    with JournalWriter(folder.journal, header) as journal:
        while batch := list(islice(records, BATCH)):
            journal.append(batch)
            events += len(batch)
    with Recorder(folder):
        pass
    return events
