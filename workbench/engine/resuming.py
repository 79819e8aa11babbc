"""What a resume of real processes begins with: looked at, and put in its place, before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from workbench.algorithms.committed import mapped_slots
from workbench.algorithms.fragment_slots import slots_needed
from workbench.algorithms.schedule import offsets
from workbench.algorithms.syncer_arithmetic import OUTER_VECTORS, SyncerArithmetic
from workbench.config import ConfigError
from workbench.datasets import open_text
from workbench.engine.layout import write_private
from workbench.engine.placing import check_cores
from workbench.engine.weights import load_initial
from workbench.protocol import restart
from workbench.protocol.plans import Rest
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, Record, learner_of
from workbench.protocol.settings import fixed_settings_of, settings_book_of
from workbench.tape.fragmentation import fragmentation_of_header
from workbench.tape.going_on import Resumable, check_text, rest_for, resumable
from workbench.tape.going_on_from import look, slots_of
from workbench.training.snapshot_files import SYNCER as SYNCER_PART
from workbench.training.snapshot_files import read_manifest, read_part, sweep
from workbench.training.snapshot_parts import syncer_part

RESUME_FILE = "resume.json"


class Wish(msgspec.Struct, frozen=True):
    """What whoever resumes a run wants: to go back to a snapshot, or (None) to lose nothing.

    ``faults`` says whether those that were planned and have not struck go on.
    """

    snapshot: int | None = None
    faults: bool = True


class Resumed(msgspec.Struct, frozen=True):
    """What the supervisor of a resumed run has to know.

    Attributes
    ----------
    cut : dict or None
        The snapshot that the run goes back to.
    epoch : int
    time_ns : int
        The run's time goes on from here.
    clock : list of int
    known : dict of str to int
        Last record of every process, by process number.
    numbers : dict of str to int
        Last start of every process, by process number.
    rest : Rest
        What is left of the plan of faults.
    merges, round : int
        Done, the last that was opened.
    """

    cut: dict[str, Any] | None
    epoch: int
    time_ns: int
    clock: list[int]
    known: dict[str, int]
    numbers: dict[str, int]
    rest: Rest
    merges: int
    round: int


def save_wish(run: Path, wish: Wish) -> None:
    """Leave a wish for the supervisor that is about to start."""
    write_private(run / RESUME_FILE, msgspec.json.encode(wish))


def read_wish(run: Path) -> Wish | None:
    """The wish that was left, None for a run that begins."""
    try:
        return msgspec.json.decode((run / RESUME_FILE).read_bytes(), type=Wish)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{run / RESUME_FILE} cannot be read: {error}") from error


def find(run: Path, wish: Wish) -> tuple[Resumable, dict[str, Any] | None]:
    """The run, and the snapshot that it has to go back to (None: nothing is lost).

    All that can be known is looked at, and nothing in the folder changes.

    Raises
    ------
    ConfigError
        It cannot go on; the line says why.
    TapeError
        There is no such run, or its journal cannot be read.
    """
    found = resumable(run)
    if found.header.get("clock") != "real":
        raise ConfigError(f"{run} is a run in virtual time; its processes are not real")
    check_cores(found.config)
    rest_for(found, wish.faults)
    cut = look(found, wish.snapshot)
    load_initial(found.folder.path, fragmentation_of_header(found.header, found.config.fragments).sizes)
    check_text(found, open_text(found.config.data))
    return found, cut


def _arithmetic(found: Resumable) -> SyncerArithmetic:
    config = found.config
    fragmentation = fragmentation_of_header(found.header, config.fragments)
    count = slots_needed(config.anchor, config.anchors_kept)
    slots = mapped_slots(found.folder.slots, fragmentation.sizes, count, OUTER_VECTORS)
    return SyncerArithmetic(fragmentation, load_initial(found.folder.path, fragmentation.sizes), slots)


def put_in_place(found: Resumable, cut: dict[str, Any] | None, faults: bool = True) -> Resumed:
    """Make the committed fragments those of the snapshot, if there is one; says what goes on from where."""
    sweep(found.folder.snapshots)
    if cut is not None:
        manifest = read_manifest(found.folder.snapshots, cut["snapshot"])
        part = syncer_part(read_part(found.folder.snapshots, cut["snapshot"], SYNCER_PART), manifest["outer"])
        if slots_of(found) is None:
            found.folder.slots.unlink(missing_ok=True)
        arithmetic = _arithmetic(found)
        for p, version in enumerate(manifest["versions"]):
            arithmetic.install(p, version, part.thetas[p], part.outers[p])
    return _facts(found, cut, faults)


def _facts(found: Resumable, cut: dict[str, Any] | None, faults: bool) -> Resumed:
    config = found.config
    fixed = fixed_settings_of(config, offsets(config.fragments, config.period))
    state = restart.restore(fixed, settings_book_of(config), found.records, cut).state
    known: dict[str, int] = {}
    numbers: dict[str, int] = {}
    for record in found.records:
        known[str(record.process)] = record.seq
        _count(numbers, record)
    last_ns = max(record.time_ns for record in found.records)
    rest = rest_for(found, faults)
    return Resumed(cut, state.epoch, last_ns, list(state.clock), known, numbers, rest, state.merges, state.opened_t)


def _count(numbers: dict[str, int], record: Record) -> None:
    """Starts of processes: what the supervisor recorded, and what joined."""
    if record.kind in (Kind.PROCESS_STARTED, Kind.PROCESS_ENDED, Kind.LEARNER_JOINED):
        key = str(record.peer)
        numbers[key] = max(numbers.get(key, 0), int(record.value))
    elif record.kind == Kind.SYNCER_STARTED:
        numbers[str(SYNCER)] = max(numbers.get(str(SYNCER), 0), record.incarnation)


class Resume:
    """The resume of a run as its supervisor sees it; says nothing about a run that is new.

    Attributes
    ----------
    resumed : Resumed or None
    """

    def __init__(self) -> None:
        self.resumed: Resumed | None = None
        self._syncer_is_up = False

    def begin(self, answer: dict[str, Any]) -> Resumed:
        """Take what the preparing process has found."""
        self.resumed = msgspec.convert(answer, Resumed)
        return self.resumed

    def up(self) -> None:
        """The syncer has begun the epoch: whoever starts it again does not resume."""
        self._syncer_is_up = True

    def number(self, process: int) -> int:
        """Last start of a process before the resume."""
        return self.resumed.numbers.get(str(process), 0) if self.resumed is not None else 0

    def arguments(self, process: int, number: int) -> dict[str, Any]:
        """What this start of a process has to know: whether the run goes on, from which cut, and its own part."""
        cut = self.resumed.cut if self.resumed is not None else None
        first = cut is not None and process >= FIRST_LEARNER and number == self.number(process) + 1
        restored = first and cut is not None and str(learner_of(process)) in cut["parts"]
        resumes = self.resumed is not None and not self._syncer_is_up
        return {
            "resume": resumes,
            "cut": cut if resumes else None,
            "restore": cut["snapshot"] if cut is not None and restored else None,
        }
