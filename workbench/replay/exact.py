"""Exact replay: a whole tape recomputed by the run's own executors, every recorded value compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import xarray as xr

from workbench.algorithms.digest import digest
from workbench.config import RunConfig, from_toml
from workbench.datasets import open_text
from workbench.protocol.records import SYNCER
from workbench.replay.differences import Difference, Findings, Impossible
from workbench.replay.environment import adopt_threads, check_data, check_training, environment_differences
from workbench.replay.kept import KEPT_BYTES
from workbench.replay.learners import ReplayedLearner
from workbench.replay.merge_table import merge_table_differences
from workbench.replay.ordering import Stuck, check_order, linear_extension
from workbench.replay.parallel import ParallelReplay
from workbench.replay.program import Merged, Programs, Restored, SnapshotRecorded, Step, read_programs
from workbench.replay.report import ReplayDiffers, ReplayReport, report_of
from workbench.replay.session import Execution, Progress, Replayed
from workbench.replay.syncer import ReplayedSyncer
from workbench.replay.upto import Upto, cut_of, limits, restricted
from workbench.tape import open_tape
from workbench.training.flat import initial_weights
from workbench.training.program import TrainingProgram

__all__ = ["Replay", "ReplayDiffers", "ReplayReport", "Replayed", "replay"]


def replay(
    run: str | Path | xr.DataTree,
    progress: Progress | None = None,
    order: str | int = "journal",
    upto: Upto | None = None,
    since: Upto | None = None,
    workers: int = 1,
    kept_bytes: int = KEPT_BYTES,
) -> Replayed:
    """Recompute a run from its tape and compare every recorded digest, loss and weight.

    The programs of the tape are executed in a linear extension of the causal order, by the executors that the run
    itself used (DESIGN section 3); of the rest only the table of merges is read, which must agree with them.  Nothing
    is executed before something is asked of the result.  A process that has not used its device yet gives it the
    threads that the run's had (it sets ``PJRT_NPROC``); else a differing number is named in the verdict.

    Parameters
    ----------
    run : path or xarray.DataTree
        Run folder, tape, or an open tape.
    progress : callable, optional
        Called after every merge with (merges done, merges on the tape).
    order : "journal" or int
        As recorded, or a random linear extension that hangs off this seed.
    upto : int or Cut, optional
        The end: a merge (row of /merges, from 0) with all that led to it, or a consistent cut (``tape.wb.cut(…)``).
    since : int or Cut, optional
        The beginning: what led to this merge, or lies in this cut, is executed, as all that follows hangs off it, and
        not compared.
    workers : int
        Processes among which the learners are shared; with 1, and where the run went back to a snapshot, everything is
        done in this one.  Same bits.
    kept_bytes : int
        Merged fragments that are kept for another look at earlier weights [bytes].

    Returns
    -------
    Replayed

    Raises
    ------
    TapeError
        There is no tape, it is damaged, or it lacks what a replay needs.
    ConfigError
        The data is not that of the run.
    """
    tape = run if isinstance(run, xr.DataTree) else open_tape(run)
    check_training(tape, "" if isinstance(run, xr.DataTree) else str(run))
    check_order(order)
    adopt_threads(tape)
    config = from_toml(tape.attrs["config"])
    text = open_text(config.data)
    check_data(tape, text)
    programs = read_programs(tape.wb.records())
    contradictions = merge_table_differences(tape, programs.merges)
    before = None if since is None else cut_of(tape, programs, since).mask()
    if upto is not None:
        programs = restricted(programs, cut_of(tape, programs, upto))

    def make() -> Execution:
        made: Execution
        if workers > 1 and not programs.cuts:
            made = ParallelReplay(config, programs, workers, before)
        else:
            made = Replay(config, TrainingProgram(config, text), programs, before)
        compare_start(made.initial, tape.attrs.get("initial_digest", ""), made.syncer.findings)
        for contradiction in contradictions:
            made.syncer.findings.note(contradiction)
        return made

    def limits_of(event: int) -> Mapping[int, int]:
        return limits(programs, tape.wb.cut(event=event))

    return Replayed(make, limits_of, lambda: environment_differences(tape), order, progress, kept_bytes)


def compare_start(initial: list[np.ndarray], recorded: str, findings: Findings) -> None:
    """Compare the digest of the initial weights (hexadecimal) with the one recorded, if there is one."""
    computed = f"{digest(np.concatenate(initial)):016x}"
    if recorded and recorded != computed:
        what = "digest of the initial weights"
        findings.note(Difference(-1, "start", "", -1, -1, "start", what, recorded, computed))


class Replay:
    """One execution of the programs of a run.

    Parameters
    ----------
    config : RunConfig
    program : TrainingProgram
        Compiled functions and text.
    programs : Programs
        What each process did.
    before : array (events,), bool, optional
        Events that are not compared.

    Attributes
    ----------
    done : dict of int to int
        Steps of each process that were executed.
    stopped : bool
        Whether nothing more can be executed.
    """

    def __init__(
        self, config: RunConfig, program: TrainingProgram, programs: Programs, before: np.ndarray | None = None
    ) -> None:
        self.programs = programs
        self.done = dict.fromkeys(programs.steps, 0)
        self.stopped = False
        self.fragmentation = program.fragmentation
        self.findings = Findings(before)
        self.initial = initial_weights(config)
        self.syncer = ReplayedSyncer(config, self.fragmentation, self.initial, programs, self.findings)
        self.learners = {
            process: ReplayedLearner(config, process, program, self.initial, self.syncer, self.findings)
            for process in programs.steps
            if process != SYNCER
        }

    def run(
        self, order: str | int = "journal", progress: Progress | None = None, upto: Mapping[int, int] | None = None
    ) -> None:
        """Execute what is left to do, as far as it can be executed.

        Parameters
        ----------
        order : "journal" or int
            See `linear_extension`.
        progress : callable, optional
            Called after every merge.
        upto : mapping of int to int, optional
            Of each process only so many of its steps, counted from its first; all by default.
        """
        if self.stopped:
            return
        total = len(self.programs.merges)
        left = {
            process: steps[self.done[process] : None if upto is None else upto.get(process, 0)]
            for process, steps in self.programs.steps.items()
        }
        try:
            for process, step in linear_extension(left, self.syncer.ready, order):
                self.done[process] += 1
                if isinstance(step, Merged):
                    self.syncer.execute(step)
                    if progress is not None:
                        progress(self.syncer.merges, total)
                elif process == SYNCER:
                    self._of_the_syncer(step)
                else:
                    self.learners[process].execute(step)
        except Impossible:
            self.stopped = True
        except Stuck as stuck:
            self.stopped = True
            self.findings.impossible(stuck.step, stuck.process, "tape", self.syncer.missing(stuck.step))
        if self.programs.broken is not None and upto is None:
            self.stopped = True
            self.findings.out_of_order(self.programs.broken)

    def _of_the_syncer(self, step: Step) -> None:
        if isinstance(step, SnapshotRecorded):
            self.syncer.snapshot(step)
        elif isinstance(step, Restored):
            self.syncer.go_back(step)

    def report(self, environment: tuple[str, ...] = ()) -> ReplayReport:
        """What was found."""
        steps = sum(learner.steps for learner in self.learners.values())
        captures = sum(learner.captures for learner in self.learners.values())
        return report_of(self.programs, self.findings, self.syncer, self.fragmentation, steps, captures, environment)

    def close(self) -> None:
        """Nothing is held beyond memory."""
