"""Cosines of every pair of outer gradients: the tape does not hold them, exact replay gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from workbench.algorithms.contributions.anchored import anchor_of
from workbench.algorithms.syncer_arithmetic import MergeInfo, MergeSettings, SyncerArithmetic
from workbench.analysis.arrays.geometry import geometry as recorded_geometry
from workbench.analysis.arrays.tables import Array
from workbench.analysis.efficiencies import RunLike, opened
from workbench.analysis.from_tape import tables_of
from workbench.analysis.geometries import RECOMPUTED, against_m, merge_coords
from workbench.analysis.labels import attrs
from workbench.config import from_toml
from workbench.datasets import open_text
from workbench.replay.environment import adopt_threads, check_data
from workbench.replay.exact import Replay
from workbench.replay.program import read_programs
from workbench.replay.report import ReplayDiffers
from workbench.tape import TapeError
from workbench.training.program import TrainingProgram

BLOCK = 1 << 16
"""Elements of a fragment whose differences are in memory at once, as float64."""
CELLS_MAX = 1 << 28
"""Most numbers of the table of pairs, (merge, learner, learner)."""

Progress = Callable[[int, int], None]
"""Takes (merges done, merges on the tape)."""


class Seen(NamedTuple):
    """The outer gradients of one merge: learners, their weights, and all inner products <v_i, v_j>."""

    learners: tuple[int, ...]
    weights: Array
    gram: Array


def geometry(run: RunLike, progress: Progress | None = None) -> xr.Dataset:
    """Recompute a run and measure the outer gradients of every merge against each other.

    v_m = anchor - theta_m is learner m's outer gradient for the fragment of a merge, s = sum w v / sum w their weighted
    mean.  Two of random directions in n dimensions have a cosine near 0 (± 1/sqrt(n)), and the mean of M such shrinks
    to 1/sqrt(M) of their norm: the reason for radial-directional averaging (arXiv 2604.21428).

    Parameters
    ----------
    run : path or xarray.DataTree
        A training run; it is replayed exactly, which takes about as long as its arithmetic took.
    progress : callable, optional

    Returns
    -------
    xarray.Dataset
        ``pair_cosine`` (merge, learner, other), 1 on the diagonal; ``mean_cosine`` (merge), the mean over pairs;
        ``cosine_to_mean``, ``norm`` (merge, learner); ``mean_norm_ratio`` (merge): ||s|| / (sum w ||v|| / sum w);
        ``merged_norm`` (merge), as the tape has it; by number of contributors ``mean_cosine_of`` and
        ``mean_norm_ratio_of``.  Attribute ``source`` says that they are recomputed.

    Raises
    ------
    TapeError
        No tape of a training run, or too many learners and merges for one table.
    ReplayDiffers
        The replay came to other weights than the run.
    """
    (tape,) = opened(run)
    if not tape.attrs.get("config"):
        raise TapeError(f"{tape.name} holds no configuration; cosines of pairs need the tape of a training run")
    found = recorded_geometry(tables_of(tape))
    merges, learners = found["norm"].shape
    if merges * learners * learners > CELLS_MAX:
        raise TapeError(f"{merges} merges of {learners} learners have {merges * learners**2} pairs; up to {CELLS_MAX}")
    seen = _replayed(tape, progress)
    pairs, columns = _measured(seen, (merges, learners))
    return _labelled(tape, found, pairs, columns)


def _replayed(tape: xr.DataTree, progress: Progress | None) -> list[Seen]:
    adopt_threads(tape)
    config = from_toml(tape.attrs["config"])
    text = open_text(config.data)
    check_data(tape, text)
    execution = Replay(config, TrainingProgram(config, text), read_programs(tape.wb.records()))
    seen: list[Seen] = []
    watched: Any = Watched(execution.syncer.arithmetic, seen.append)
    execution.syncer.arithmetic = watched
    execution.run(progress=progress)
    if execution.findings.match == "diverged":
        first = execution.findings.first
        raise ReplayDiffers(f"the replay has other weights than the run: {first.text() if first else 'unknown'}")
    return seen


class Watched:
    """A syncer's arithmetic of which every merge is measured before it is made.

    Parameters
    ----------
    arithmetic : SyncerArithmetic
    take : callable
        Takes the `Seen` of each merge.
    """

    def __init__(self, arithmetic: SyncerArithmetic, take: Callable[[Seen], None]) -> None:
        self._arithmetic, self._take = arithmetic, take

    def merge(
        self,
        p: int,
        new_version: int,
        learners: Sequence[int],
        contributions: Sequence[np.ndarray],
        weights: Sequence[float],
        base_versions: Sequence[int],
        settings: MergeSettings,
    ) -> MergeInfo:
        """Measure, then merge."""
        theta = self._arithmetic.theta(p)
        by_base = settings.anchor == "base"
        anchors = [
            anchor_of(settings.anchor, theta, self._arithmetic.anchor(p, base) if by_base else theta)
            for base in base_versions
        ]
        self._take(Seen(tuple(learners), np.asarray(weights, float), gram(anchors, contributions)))
        return self._arithmetic.merge(p, new_version, learners, contributions, weights, base_versions, settings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arithmetic, name)


def gram(anchors: Sequence[np.ndarray] | Array, values: Sequence[np.ndarray] | Array) -> Array:
    """Inner products <v_i, v_j> of v = anchor - value, in float64, block by block."""
    found = np.zeros((len(values), len(values)))
    for start in range(0, len(values[0]), BLOCK):
        end = start + BLOCK
        v = np.stack(
            [np.subtract(a[start:end], x[start:end], dtype=np.float64) for a, x in zip(anchors, values, strict=True)]
        )
        found += v @ v.T
    return found


def _measured(seen: Sequence[Seen], shape: tuple[int, int]) -> tuple[Array, dict[str, Array]]:
    merges, learners = shape
    pairs = np.full((merges, learners, learners), np.nan)
    norm, to_mean = np.full(shape, np.nan), np.full(shape, np.nan)
    mean_cosine, ratio = np.full(merges, np.nan), np.full(merges, np.nan)
    for row, (who, weights, inner) in enumerate(seen):
        lengths = np.sqrt(np.diag(inner))
        share = weights / weights.sum()
        dots = inner @ share
        mean = float(np.sqrt(max(share @ dots, 0.0)))
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = np.clip(inner / np.outer(lengths, lengths), -1, 1)
            to_mean[row, list(who)] = np.clip(dots / (lengths * mean), -1, 1)
            ratio[row] = mean / (share @ lengths)
        pairs[row][np.ix_(who, who)] = cosine
        norm[row, list(who)] = lengths
        if len(who) > 1:
            mean_cosine[row] = cosine[~np.eye(len(who), dtype=bool)].mean()
    columns = {"norm": norm, "cosine_to_mean": to_mean, "mean_cosine": mean_cosine, "mean_norm_ratio": ratio}
    return pairs, columns


_NAMES = {
    "norm": "norm of the contribution's outer gradient v",
    "cosine_to_mean": "cosine of v to the weighted mean of all",
    "mean_cosine": "mean cosine over the pairs of the merge",
    "mean_norm_ratio": "norm of the weighted mean over the weighted mean norm",
}


def _labelled(tape: xr.DataTree, found: dict[str, Array], pairs: Array, columns: dict[str, Array]) -> xr.Dataset:
    data: dict[str, Any] = {
        name: (("merge", "learner")[: values.ndim], values, attrs(("1", _NAMES[name])))
        for name, values in columns.items()
    }
    data["pair_cosine"] = (("merge", "learner", "other"), pairs, attrs(("1", "cosine between two outer gradients")))
    data["merged_norm"] = ("merge", found["merged_norm"], attrs(("1", "norm of the merged outer gradient, recorded")))
    coords = {**merge_coords(tape, found), "other": np.arange(pairs.shape[2])}
    result = xr.Dataset(data, coords=coords, attrs={"source": RECOMPUTED})
    return against_m(result, ("mean_cosine", "mean_norm_ratio"))
