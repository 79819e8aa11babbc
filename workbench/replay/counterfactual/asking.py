"""`what_if`: a run's tape asked what would have been with something changed (DESIGN section 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import xarray as xr

from workbench.config import ConfigError, RunConfig
from workbench.datasets import open_text
from workbench.protocol.faults import Fault
from workbench.replay.counterfactual.branch import Branch
from workbench.replay.counterfactual.branching import assemble
from workbench.replay.counterfactual.calibration import calibrated, unlike
from workbench.replay.counterfactual.changes import ARITHMETIC, SCHEDULE, Changes, changes_of, check_alone, check_live
from workbench.replay.counterfactual.continuing import from_start, go_on, patience_of, plan_of
from workbench.replay.counterfactual.durations import KeyedTimes
from workbench.replay.counterfactual.lives import AtBranch, Cut, learners_at
from workbench.replay.counterfactual.measured import Measured
from workbench.replay.counterfactual.outcome import WhatIf, numbers_of, words_of
from workbench.replay.counterfactual.parent import Parent, read_parent
from workbench.replay.counterfactual.plan import ChildFaults, fault_words
from workbench.replay.counterfactual.put_in import PutIn
from workbench.replay.counterfactual.renumbering import Renumbered
from workbench.replay.counterfactual.retelling import Retelling
from workbench.replay.counterfactual.turn import Turn, openings, turn_of
from workbench.replay.counterfactual.writing import (
    RunWriter,
    answering,
    checked_folder,
    free_folder,
    header_of,
    parent_of,
)
from workbench.replay.environment import adopt_threads, check_data
from workbench.simulate.numbers import Numbers
from workbench.simulate.shelves import InMemory
from workbench.simulate.world import World
from workbench.tape import open_tape
from workbench.training.environment import fingerprint
from workbench.training.program import TrainingProgram

__all__ = ["WhatIf", "what_if"]

Progress = Callable[[int, int], None]
"""Takes (merges done, merges of the run)."""
SECOND = 10**9


def what_if(
    run: str | Path | xr.DataTree,
    changes: Mapping[str, Any] | None = None,
    /,
    *,
    seeds: int = 1,
    from_round: int | None = None,
    without: Sequence[int | str] = (),
    moved: Mapping[int, float] | None = None,
    added: Sequence[Fault] = (),
    resimulate: bool = False,
    out: str | Path | None = None,
    path: str = "",
    progress: Progress | None = None,
    **values: Any,
) -> WhatIf:
    """Ask what a run would have been with something changed, and leave the answer as a run of its own.

    Arithmetic (merge, weights, outer, its numbers, fold, inner.rate) keeps the schedule of the tape and computes
    everything anew, or all from a round on: one exact answer.  A change of the schedule (quorum, grace, …, a fault
    removed, moved or added) runs the machines on the recorded inputs up to the first record that differs; from there on
    virtual time takes over, with the durations of the tape by key, and draws where it has none.

    Parameters
    ----------
    run : path or xarray.DataTree
        Run folder, tape, or an open tape.
    changes, **values
        Keys of the configuration with their new values; dotted ones in ``changes``.
    seeds : int
        Children with draws of their own; an arithmetic answer has one, whatever is asked for.
    from_round : int, optional
        The change acts from the opening of this round on (the one that counts, where a resume took rounds back).
        Faults have times of their own.
    without : sequence of int or str
        Faults to remove: numbers, kinds (``"kill"``) or kinds at a learner (``"kill:2"``); with ``"end"`` or
        ``"end:2"`` processes live on that ended without a fault of the workbench.
    moved : mapping of int to float, optional
        Fault by number to the time at which it strikes instead [s from the start of rounds].
    added : sequence of Fault, optional
        Others; their times count from the start of rounds.
    resimulate : bool
        Virtual time from the start, whatever is changed; with no change a test of the timing model: the answer's
        ``calibration`` compares its merges with the parent's.
    out : path, optional
        Folder of the child; with several seeds of ``seed-0``, ``seed-1``, …; by default the next free below ``runs/``.
    path : str, optional
        Where the parent lies, for the record, if ``run`` is an open tape.
    progress : callable, optional
        Called now and then with (merges done, merges of the run).

    Returns
    -------
    WhatIf

    Raises
    ------
    TapeError
        There is no tape, or it lacks what the question needs.
    ConfigError
        A change that no tape can answer for, or an unknown key, value or fault.
    StorageFull, KeyboardInterrupt
        A full disk, Ctrl-C: what is whole is named, the rest is removed.
    """
    folder = free_folder() if out is None else checked_folder(Path(out))
    parent = read_parent(run, path)
    wanted = changes_of(parent.config, {**(changes or {}), **values})
    if seeds < 1:
        raise ConfigError(f"seeds = {seeds}; allowed: from 1")
    faults = ChildFaults.of(parent, without, moved or {}, added)
    if from_round is not None:
        last = max((t for _, t in openings(parent.records)), default=-1)
        check_live(wanted.values, from_round, last)
        check_alone(wanted.values, faults.is_changed, resimulate)
    question = _Question(parent, wanted, faults, from_round, resimulate, seeds, progress)
    with answering(folder) as question.whole:
        return question.answer(folder)


@dataclass
class _Question:
    parent: Parent
    wanted: Changes
    faults: ChildFaults
    from_round: int | None
    resimulate: bool
    seeds: int
    progress: Progress | None
    used: Counter[str] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)
    learners: AtBranch | None = None
    told: int = -1
    whole: list[Path] = field(default_factory=list)

    def answer(self, out: Path) -> WhatIf:
        """Make the children, and compare."""
        parent = self.parent
        adopt_threads(parent.tape)
        text = open_text(parent.config.data)
        check_data(parent.tape, text)
        program = TrainingProgram(self.config, text)
        if self._is_new_from_start():
            runs = self._children(out, lambda path, seed, alone: self._from_start(path, seed, program))
            return self._outcome(SCHEDULE, None, runs)
        told, branch = self._retold(program)
        if branch is None:
            kind = self._asked()
            return self._outcome(kind, None, [self._kept(out, told, program, kind)])
        runs = self._children(out, lambda path, seed, alone: self._branched(path, seed, told, branch, alone))
        return self._outcome(SCHEDULE, branch, runs)

    def _retold(self, program: TrainingProgram) -> tuple[Retelling, Branch | None]:
        """The tape told again, up to its branch; a change of arithmetic alone, and a numeric fault, may have none."""
        if self._asked() == ARITHMETIC and (self.faults.removed or self.turn is not None):
            put_in = None if self.turn is None else PutIn(self.parent.records, self.turn, self.wanted.values)
            renumbered = Renumbered(self.parent.records, self.faults.removed, put_in)
            told = Retelling(self.parent, self.config, self._numbers(program), renumbered=renumbered)
            if told.run(self._said) is None:
                return told, None
        asked = (self.turn, self.wanted.values) if self.turn is not None else None
        told = Retelling(self.parent, self.config, self._numbers(program), self.faults.cut_ns, asked)
        return told, told.run(self._said)

    def _numbers(self, program: TrainingProgram) -> Numbers:
        return Numbers(self.config, program, InMemory(self.config.snapshots_kept))

    @cached_property
    def turn(self) -> Turn | None:
        """Where a change from a round on is asked for."""
        return None if self.from_round is None else turn_of(self.parent, self.from_round)

    @property
    def config(self) -> RunConfig:
        """What the child begins with; a change from a round on is asked for when that is opened."""
        return self.parent.config if self.from_round is not None else self.wanted.config

    def _asked(self) -> str:
        if self.resimulate or (self.faults.cut_ns is not None and not self.faults.are_numeric):
            return SCHEDULE
        return self.wanted.kind

    def _is_new_from_start(self) -> bool:
        late = any(fault.kind == "late" for fault in self.faults.added)
        return self.resimulate or late or (self.from_round is None and self.wanted.from_start)

    @property
    def _is_unchanged(self) -> bool:
        return not (self.wanted.values or self.faults.is_changed)

    def _said(self, merges: int) -> None:
        if self.progress is not None and merges != self.told:
            self.told = merges
            self.progress(merges, self.wanted.config.rounds)

    def _children(self, out: Path, make: Callable[[Path, int, bool], None]) -> list[Path]:
        paths = [out] if self.seeds == 1 else [out / f"seed-{seed}" for seed in range(self.seeds)]
        for seed, path in enumerate(paths):
            make(path, seed, seed == self.seeds - 1)
            self.whole.append(path)
        return paths

    def _kept(self, path: Path, told: Retelling, program: TrainingProgram, kind: str) -> Path:
        """The schedule of the tape."""
        lineage = self._lineage(None, kind, len(told.records), 0)
        clock = str(self.parent.header.get("clock", "virtual"))
        writer = RunWriter(path, self.config, header_of(self.parent, self.config, program, clock, lineage))
        writer.take(told.log)
        writer.close(bool(self.parent.header["closed"]))
        self.whole.append(path)
        return path

    def _branched(self, path: Path, seed: int, told: Retelling, branch: Branch, alone: bool) -> None:
        lineage = self._lineage(branch, SCHEDULE, branch.event, seed)
        header = header_of(self.parent, self.config, told.numbers.program, "virtual", lineage)
        writer = RunWriter(path, self.config, header)
        writer.take(told.log)
        times = self._times(seed, told)
        coming = plan_of(self.faults.kept, self.faults.added, branch.time_ns - 1, self.config.learners)
        struck = [s for s in self.faults.kept if s.time_ns < branch.time_ns]
        cut = Cut(branch, self._learners(told, branch), struck, self.faults.ends, coming)
        world = assemble(self.parent, told, cut, times, writer.append, alone)
        self._finish(world, writer, times)

    def _learners(self, told: Retelling, branch: Branch) -> AtBranch:
        """The learners' machines at the branch, found once for all seeds."""
        if self.learners is None:
            self.learners = learners_at(self.parent, told, branch, self._times(0, told).measured.delay_ns)
        return self.learners

    def _from_start(self, path: Path, seed: int, program: TrainingProgram) -> None:
        lineage = self._lineage(None, SCHEDULE, 0, seed)
        writer = RunWriter(path, self.config, header_of(self.parent, self.config, program, "virtual", lineage))
        times = self._times(seed)
        coming = plan_of(self.faults.kept, self.faults.added, -1, self.config.learners)
        ends = [end for end in self.faults.ends if end.learner < self.config.learners]
        numbers = self._numbers(program)
        identity = {"fingerprint": fingerprint()}
        world = from_start(self.parent, numbers, times, coming, ends, writer.append, identity)
        self._finish(world, writer, times)

    def _finish(self, world: World, writer: RunWriter, times: KeyedTimes) -> None:
        try:
            go_on(world, patience_of(self.parent), self._said)
        except BaseException:
            writer.release()
            raise
        writer.close()
        self.used += times.asked
        self.drawn += times.drawn

    def _times(self, seed: int, told: Retelling | None = None) -> KeyedTimes:
        epoch = told.machine.state.epoch if told is not None else 0
        return KeyedTimes(self.measured, seed, self.wanted.bytes_ratio, epoch)

    @cached_property
    def measured(self) -> list[Measured]:
        """Durations of the tape, epoch by epoch."""
        return [Measured(part) for part in self.parent.by_epoch]

    def _lineage(self, branch: Branch | None, kind: str, shared: int, seed: int) -> dict[str, Any]:
        kept = kind == ARITHMETIC and (bool(self.faults.removed) or self.turn is not None)  # with the schedule
        anew = kept or (self.from_round is None and self.wanted.computes_anew)
        event, changes = self._event(branch, shared), dict(self.wanted.values)
        without = self.faults.gone
        return {
            **parent_of(self.parent, event, kind, shared, anew),
            "changes": changes,
            "from_round": self.from_round,
            "without": without,
            "seed": seed,
        }

    def _event(self, branch: Branch | None, shared: int) -> int | None:
        """Where the parent was left: for a fault that is gone, the event that says that it struck."""
        if branch is None and self.turn is not None:
            return self.turn.event
        if branch is None:
            return 0 if self._is_new_from_start() else None
        gone = self.faults.first_gone
        return gone if branch.before and gone is not None else branch.event

    def _outcome(self, kind: str, branch: Branch | None, runs: list[Path]) -> WhatIf:
        parent, event = self.parent, self._event(branch, 0)
        shared = branch.event if branch is not None else len(parent.records)
        found = list(self.learners.rebuilt.values()) if self.learners is not None else []
        there = event is not None and event < len(parent.records)
        cores = str(parent.header.get("fingerprint", {}).get("visible_cores", ""))
        real, same = parent.header.get("clock") == "real", self._is_unchanged
        return WhatIf(
            kind=kind,
            asked=self._asked(),
            changes=dict(self.wanted.values),
            without=tuple(self.faults.gone),
            added=tuple(fault_words(fault, parent.began_ns) for fault in self.faults.added),
            branch_event=event,
            branch=words_of(parent.records[event], event, parent.began_ns) if there and event is not None else "",
            shared_events=event if branch is None and event is not None else shared,
            parent=numbers_of(parent.tape),
            children=[numbers_of(open_tape(path)) for path in runs],
            runs=runs,
            drawn=dict(self.drawn),
            used=dict(self.used),
            rebuilt=sum(learner.made for learner in found),
            differing=sum(learner.differing for learner in found),
            learners_per_core=parent.config.learners / int(cores) if real and cores.isdecimal() else None,
            seeds_asked=self.seeds,
            unlike=unlike(parent.records, runs[0]) if same and not self.resimulate else None,
            calibration=calibrated(parent.records, runs) if same and self.resimulate else None,
            from_round=self.from_round,
        )
