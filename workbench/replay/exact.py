"""Exact replay: a whole tape recomputed by the run's own executors, every recorded value compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import xarray as xr

from workbench.algorithms.digest import digest
from workbench.config import RunConfig, from_toml
from workbench.datasets import open_text
from workbench.protocol.records import SYNCER, label_of
from workbench.replay.differences import Difference, Findings, Impossible
from workbench.replay.environment import adopt_threads, check_data, environment_differences
from workbench.replay.learners import ReplayedLearner
from workbench.replay.ordering import Stuck, linear_extension
from workbench.replay.program import Merged, OutOfOrder, Programs, read_programs
from workbench.replay.report import ReplayDiffers, ReplayReport
from workbench.replay.syncer import ReplayedSyncer
from workbench.tape import TapeError, open_tape
from workbench.training.flat import initial_weights
from workbench.training.program import TrainingProgram

__all__ = ["Replay", "ReplayDiffers", "ReplayReport", "replay"]

Progress = Callable[[int, int], None]
"""Takes (merges done, merges on the tape)."""


def replay(
    run: str | Path | xr.DataTree, progress: Progress | None = None, order: str | int = "journal"
) -> ReplayReport:
    """Recompute a run from its tape and compare every recorded digest, loss and weight.

    The programs of the tape are executed in a linear extension of the causal order, by the executors that the run
    itself used (DESIGN section 3); nothing else of the tape is read.  A process that has not used its device yet gives
    it the threads that the run's had (it sets ``PJRT_NPROC``); else a differing number is named in the verdict.

    Parameters
    ----------
    run : path or xarray.DataTree
        Run folder, tape, or an open tape.
    progress : callable, optional
        Called after every merge with (merges done, merges on the tape).
    order : "journal" or int
        As recorded, or a random linear extension that hangs off this seed.

    Returns
    -------
    ReplayReport

    Raises
    ------
    TapeError
        There is no tape, it is damaged, or it lacks what a replay needs.
    ConfigError
        The data is not that of the run.
    """
    tape = run if isinstance(run, xr.DataTree) else open_tape(run)
    if not tape.attrs.get("config"):
        raise TapeError(f"{tape.name} holds no configuration; expected the tape of a training run")
    adopt_threads(tape)
    config = from_toml(tape.attrs["config"])
    text = open_text(config.data)
    check_data(tape, text)
    done = Replay(config, TrainingProgram(config, text), read_programs(tape.wb.records()))
    done.compare_start(tape.attrs.get("initial_digest", ""))
    done.run(order, progress)
    return done.report(tuple(environment_differences(tape)))


class Replay:
    """One execution of the programs of a run.

    Parameters
    ----------
    config : RunConfig
    program : TrainingProgram
        Compiled functions and text.
    programs : Programs
        What each process did.

    Attributes
    ----------
    done : dict of int to int
        Steps of each process that were executed.
    stopped : bool
        Whether nothing more can be executed.
    """

    def __init__(self, config: RunConfig, program: TrainingProgram, programs: Programs) -> None:
        self.programs = programs
        self.done = dict.fromkeys(programs.steps, 0)
        self.stopped = False
        self.fragmentation = program.fragmentation
        self.findings = Findings()
        self.initial = initial_weights(config)
        self.syncer = ReplayedSyncer(config, self.fragmentation, self.initial, programs, self.findings)
        self.learners = {
            process: ReplayedLearner(config, process, program, self.initial, self.syncer, self.findings)
            for process in programs.steps
            if process != SYNCER
        }

    def compare_start(self, recorded: str) -> None:
        """Compare the digest of the initial weights (hexadecimal) with the one recorded, if there is one."""
        computed = f"{digest(np.concatenate(self.initial)):016x}"
        if recorded and recorded != computed:
            what = "digest of the initial weights"
            self.findings.note(Difference(-1, "start", "", -1, -1, "start", what, recorded, computed))

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
                else:
                    self.learners[process].execute(step)
        except Impossible:
            self.stopped = True
        except Stuck as stuck:
            self.stopped = True
            self.findings.impossible(stuck.step, stuck.process, "tape", self.syncer.missing(stuck.step))
        if self.programs.broken is not None and upto is None:
            self.stopped = True
            note_broken(self.programs.broken, self.findings)

    def report(self, environment: tuple[str, ...] = ()) -> ReplayReport:
        """What was found."""
        steps = sum(learner.steps for learner in self.learners.values())
        compared = steps + self.syncer.merges > 0
        final = [self.syncer.arithmetic.theta(p).copy() for p in range(self.fragmentation.fragments)]
        return ReplayReport(
            bit_exact=False if self.findings.count else (True if compared else None),
            merges=len(self.programs.merges),
            merges_compared=self.syncer.merges,
            steps=steps,
            captures=sum(learner.captures for learner in self.learners.values()),
            match=self.findings.match,
            largest=self.findings.largest,
            difference=self.findings.first,
            environment=environment,
            final=final,
            fragmentation=self.fragmentation,
        )


def note_broken(b: OutOfOrder, findings: Findings) -> None:
    """Take note of the record at which the programs end."""
    place = (b.event, b.kind.name.lower(), label_of(b.process), -1, -1, "tape")
    findings.note(Difference(*place, "number of the record", str(b.seq), str(b.expected)))
