"""A replay as an object: executed as far as somebody asks, with the weights as of every merge on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from workbench.algorithms.fragments import Fragmentation
from workbench.replay.differences import Findings
from workbench.replay.kept import KEPT_BYTES, KeptVersions
from workbench.replay.program import Merged, Programs
from workbench.replay.report import ReplayDiffers, ReplayReport, tensors_by_name
from workbench.replay.syncer import ReplayedSyncer
from workbench.replay.upto import merge_number

Progress = Callable[[int, int], None]
"""Takes (merges done, merges on the tape)."""


class Execution(Protocol):
    """What executes programs: `workbench.replay.exact.Replay`, or `workbench.replay.parallel.ParallelReplay`."""

    programs: Programs
    fragmentation: Fragmentation
    initial: list[np.ndarray]
    syncer: ReplayedSyncer
    stopped: bool

    @property
    def findings(self) -> Findings:
        """Differences found so far."""

    def run(
        self, order: str | int = "journal", progress: Progress | None = None, upto: Mapping[int, int] | None = None
    ) -> None:
        """Execute what is left to do."""

    def report(self, environment: tuple[str, ...] = ()) -> ReplayReport:
        """What was found."""

    def close(self) -> None:
        """Let go of what it holds."""


class Replayed:
    """The replay of a run, executed when something is asked of it.

    Whatever its `report` has can be asked of it directly: ``wb.replay(run).bit_exact``.

    Parameters
    ----------
    make : callable
        Makes an execution that has done nothing.
    limits_of : callable
        From the event of a merge to the steps of each program that lie in its past.
    environment : callable
        Entries of the fingerprint that differ, with both values.
    order, progress
        See `workbench.replay.exact.replay`.
    kept_bytes : int
        Weights of earlier merges that are kept.

    Examples
    --------
    Merges 0 to 41 are recomputed, then nothing more, then the rest; `verify` raises where a digest differs::

        session = wb.replay("runs/first")
        session.weights(41)["embed"].shape
        session.weights(40)
        session.verify()
    """

    def __init__(
        self,
        make: Callable[[], Execution],
        limits_of: Callable[[int], Mapping[int, int]],
        environment: Callable[[], list[str]],
        order: str | int = "journal",
        progress: Progress | None = None,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self._make, self._limits_of, self._environment = make, limits_of, environment
        self._order, self._progress = order, progress
        self._execution = make()
        self._kept = KeptVersions(self._execution.initial, self._execution.programs, kept_bytes)
        self._report: ReplayReport | None = None

    @property
    def report(self) -> ReplayReport:
        """What was found, once everything is executed."""
        if self._report is None:
            self._execution.run(self._order, self._done)
            self._report = self._execution.report(tuple(self._environment()))
            self._execution.close()
        return self._report

    def verify(self) -> ReplayReport:
        """Execute everything and return the report if every value was the tape's.

        Raises
        ------
        ReplayDiffers
            Else, with the verdict and the first difference, also when there was nothing to compare.
        """
        return self.report.verify()

    def flat_weights(self, merge: int | None = None) -> list[np.ndarray]:
        """Global weights just after a merge, by fragment.

        Parameters
        ----------
        merge : int, optional
            Row of /merges, from 0; negative counts from the end.  By default what the replay ends with.

        Returns
        -------
        list of arrays (size,), float32
            Read-only.  Merges that were passed before are not computed again, while their fragments are kept.

        Raises
        ------
        ReplayDiffers
            The replay came to other values than the tape (beyond 1e-6), or could not go on.
        TapeError
            There is no such merge.
        """
        if merge is None:
            return self.report.final
        merge = merge_number(self._execution.programs, merge)
        found = self._kept.weights(merge)
        if found is None:
            found = self._sought(merge)
        self._refuse_others()
        return found

    def weights(self, merge: int | None = None) -> dict[str, np.ndarray]:
        """Global weights just after a merge by tensor name, float32; see `flat_weights`."""
        return tensors_by_name(self._execution.fragmentation, self.flat_weights(merge))

    def close(self) -> None:
        """End worker processes, if there are any; what was computed stays."""
        self._execution.close()

    def __repr__(self) -> str:
        total = len(self._execution.programs.merges)
        return (
            f"<Replayed: {self._execution.syncer.merges} of {total} merges so far>"
            if self._report is None
            else repr(self._report)
        )

    def _repr_html_(self) -> str:
        cards = import_module("workbench.views.replay_card")
        card: str = cards.waiting_card() if self._report is None else cards.replay_card(self._report)
        return card

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.report, name)

    def _sought(self, merge: int) -> list[np.ndarray]:
        """Execute up to a merge; from the start, if it was passed and its fragments are not kept any more."""
        if self._execution.syncer.merges > merge:
            self._execution.close()
            self._execution = self._make()
        self._execution.run(self._order, self._done, self._limits_of(self._execution.programs.merges[merge].event))
        found = self._kept.weights(merge)
        if found is None:
            raise ReplayDiffers(f"merge {merge} cannot be replayed: {self._first()}")
        return found

    def _refuse_others(self) -> None:
        if self._execution.findings.match == "diverged":
            raise ReplayDiffers(f"the replay has other weights than the run: {self._first()}")

    def _first(self) -> str:
        first = self._execution.findings.first
        return first.text() if first is not None else "the tape ends before it"

    def _done(self, done: int, total: int) -> None:
        merged: Merged = self._execution.programs.merges[done - 1]
        flat = self._execution.syncer.arithmetic.theta(merged.fragment)
        self._kept.keep(merged, flat)
        if self._progress is not None and self._report is None:
            self._progress(done, total)
