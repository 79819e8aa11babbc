"""What logs prove: the order of each replica's steps, and between which of them its syncs lie."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workbench.tape.errors import TapeError
from workbench.tape.foreign.reading import Line
from workbench.tape.journal import PROCESSES_MAX

CELLS_MAX = 1 << 28
"""Most entries of all clocks together."""


@dataclass
class Program:
    """The steps of one replica, in its own order.

    Attributes
    ----------
    name : str
    steps : list of Line
    lives : list of int
        Life of each step, from 0: a step number that does not rise begins another.
    last_ns : int
        Time of its last line.
    """

    name: str
    steps: list[Line] = field(default_factory=list)
    lives: list[int] = field(default_factory=list)
    last_ns: int = 0


@dataclass
class Sync:
    """One committed sync.

    Attributes
    ----------
    number, time_ns : int
        As the log has them; the time of its first report.
    participants : list of int
        Replicas by place in `History.programs`, ascending.
    positions : dict of int to int
        Of each participant how many of its steps come before.
    placed : int
        Participants that do not report it themselves: placed by their time stamps.
    first : Line
        Its first report.
    """

    number: int
    time_ns: int
    first: Line
    listed: tuple[str, ...] | None
    reported: dict[str, int] = field(default_factory=dict)
    participants: list[int] = field(default_factory=list)
    positions: dict[int, int] = field(default_factory=dict)
    placed: int = 0


@dataclass(frozen=True)
class History:
    """Programs of all replicas, in the order of their names, and the syncs in the order of their numbers."""

    programs: list[Program]
    syncs: list[Sync]


def history_of(lines: Sequence[Line], files: Sequence[Path]) -> History:
    """Lay lines in order.

    A replica's program order is that of its time stamps, of its lines where they are equal.  A sync comes behind every
    step that a participant reports before it, and before the next: by the participant's own report of the sync, else by
    the time stamps of its steps against that of the first report.

    Raises
    ------
    TapeError
        Lines that contradict each other: both are named.
    """
    programs: dict[str, Program] = {}
    syncs: dict[int, Sync] = {}
    newest: dict[str, tuple[int, Line]] = {}
    reader = _Reader(files, programs, syncs, newest)
    for line in sorted(lines, key=lambda each: (each.time_ns, each.file, each.number)):
        reader.take(line)
    if not programs:
        raise TapeError(f"{files[0]}: no line reports a step or a sync; expected the fields that the map names")
    ordered = _in_order(programs)
    if (3 + len(ordered)) * (len(lines) + len(syncs)) > CELLS_MAX or len(ordered) > PROCESSES_MAX - 64:
        raise TapeError(f"{len(lines):,} lines of {len(ordered):,} replicas are too much for the clocks of one tape")
    chain = [syncs[number] for number in sorted(syncs)]
    _place(chain, ordered, files)
    return History(ordered, chain)


def _in_order(programs: dict[str, Program]) -> list[Program]:
    """Replicas by their names; by number where all names are numbers."""
    whole = all(name.isdecimal() for name in programs)
    return sorted(programs.values(), key=lambda program: (int(program.name) if whole else 0, program.name))


class _Reader:
    def __init__(
        self,
        files: Sequence[Path],
        programs: dict[str, Program],
        syncs: dict[int, Sync],
        newest: dict[str, tuple[int, Line]],
    ) -> None:
        self.files, self.programs, self.syncs, self.newest = files, programs, syncs, newest

    def place(self, line: Line) -> str:
        return f"{self.files[line.file]}, line {line.number}"

    def take(self, line: Line) -> None:
        """Enter a line: its step, then its sync."""
        program = self.programs.setdefault(line.replica, Program(line.replica))
        program.last_ns = line.time_ns
        if line.step is not None:
            self._step(program, line, line.step)
        if line.sync is not None:
            self._sync(program, line, line.sync)

    def _step(self, program: Program, line: Line, step: int) -> None:
        last = program.steps[-1] if program.steps else None
        if last is not None and step == last.step and line.sync is not None:
            return  # a sync names the step that it follows
        again = last is not None and last.step is not None and step <= last.step
        program.lives.append((program.lives[-1] if program.lives else 0) + again)
        program.steps.append(line)

    def _sync(self, program: Program, line: Line, number: int) -> None:
        before, where = self.newest.get(program.name, (-1, line))
        if number <= before:
            raise TapeError(
                f"{self.place(line)}: {program.name} reports sync {number} behind sync {before} ({self.place(where)}); "
                "expected numbers that rise"
            )
        self.newest[program.name] = (number, line)
        sync = self.syncs.setdefault(number, Sync(number, line.time_ns, line, line.participants))
        if line.participants is not None and set(line.participants) != set(sync.listed or ()):
            raise TapeError(
                f"{self.place(line)}: sync {number} with {', '.join(line.participants)}; expected the participants of "
                f"{self.place(sync.first)}: {', '.join(sync.listed or ())}"
            )
        sync.reported[program.name] = len(program.steps)


def _place(chain: list[Sync], programs: list[Program], files: Sequence[Path]) -> None:
    """Find the participants of every sync, and where it lies between their steps."""
    numbers = {program.name: place for place, program in enumerate(programs)}
    own: list[list[Sync]] = [[] for _ in programs]
    for sync in chain:
        names = sync.listed if sync.listed is not None else tuple(sync.reported)
        unknown = [name for name in names if name not in numbers]
        if unknown:
            raise TapeError(
                f"{files[sync.first.file]}, line {sync.first.number}: sync {sync.number} names {unknown[0]}; expected "
                f"replicas with lines of their own ({', '.join(numbers)}); give its log, too"
            )
        sync.participants = sorted(numbers[name] for name in names)
        for place in sync.participants:
            own[place].append(sync)
    for place, program in enumerate(programs):
        _place_own(own[place], place, program)


def _place_own(mine: list[Sync], place: int, program: Program) -> None:
    """Places of one replica's syncs: its own reports first, the others by time between them."""
    times = [step.time_ns for step in program.steps]
    limit, upper = len(times), []
    for sync in reversed(mine):
        limit = min(limit, sync.reported.get(program.name, limit))
        upper.append(limit)
    reached = 0
    for sync, most in zip(mine, reversed(upper), strict=True):
        own = sync.reported.get(program.name)
        if own is None:
            sync.placed += 1
            own = bisect_right(times, sync.time_ns)
        reached = max(reached, min(own, most))
        sync.positions[place] = reached
