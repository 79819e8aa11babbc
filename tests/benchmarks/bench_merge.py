"""Merge and outer step against a plain memory copy: ``python -m tests.benchmarks.bench_merge``.

Eight contributions of 64 MB to one fragment.  Bytes are those that must move: each contribution, Theta and momentum
read once, Theta and momentum written once.  Copy and merges run by turns; of a run's turns each job's fastest counts,
in CPU time of the thread, since neighbours on a busy machine can only add to it; the ratio is the median of the runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import numpy as np

from workbench.algorithms.compiled import aligned
from workbench.algorithms.fragments import FragmentLayout, TensorSpec, fragment
from workbench.algorithms.merging import MergeJob, MergeSettings, merge_fragment, scratch_size
from workbench.algorithms.slots import Key

LEARNERS = 8
SIZE = 16 * 2**20
SIDE = 512
LARGE_SIDE = 2048
RUNS, TURNS = 3, 6
BUDGETS = {"mean": 0.9, "rda": 0.6}
"""Bytes per second over those of ``numpy.copyto``, with Nesterov."""


class Row(NamedTuple):
    """One line of the table; ``budget`` and ``met`` are None where nothing is promised."""

    name: str
    value: float
    unit: str
    budget: float | None
    met: bool | None


def run(runs: int = RUNS, turns: int = TURNS) -> list[Row]:
    """Measure by turns: medians over runs of the fastest turns.

    Returns
    -------
    list of Row
        The budgets' ratios for matrices of 512 x 512, then the same with digests of Theta and momentum and with
        matrices of 2048 x 2048, then milliseconds.
    """
    vectors = _vectors()
    jobs: dict[str, Callable[[], object]] = {"copy": _copy(vectors)}
    for rule in BUDGETS:
        jobs[f"{rule} + Nesterov"] = _merge(vectors, rule, SIDE, digests=False)
        jobs[f"{rule} + Nesterov, digests"] = _merge(vectors, rule, SIDE, digests=True)
        jobs[f"{rule} + Nesterov, large tensors"] = _merge(vectors, rule, LARGE_SIDE, digests=False)
    seconds = _by_turns(jobs, runs, turns)
    rows = []
    for name in list(jobs)[1:]:
        moved = (LEARNERS + 4) / 2  # in units of what a copy moves
        value = median(moved * copy / own for copy, own in zip(seconds["copy"], seconds[name], strict=True))
        budget = BUDGETS.get(name.removesuffix(" + Nesterov"))
        rows.append(Row(f"{name} / copy", value, "ratio", budget, None if budget is None else value >= budget))
    return rows + [Row(name, median(seconds[name]) * 1e3, "ms", None, None) for name in jobs]


def _vectors() -> list[np.ndarray]:
    """Theta, momentum, both after the step, and nearly orthogonal contributions; every page touched."""
    generator = np.random.default_rng(0)
    result = [aligned((SIZE,)) for _ in range(4 + LEARNERS)]
    for vector in result:
        generator.standard_normal(SIZE, np.float32, out=vector)
    for vector in result[4:]:
        vector *= np.float32(0.01)
        vector += result[0]
    return result


def _copy(vectors: list[np.ndarray]) -> Callable[[], object]:
    source, target = aligned((SIZE,)), aligned((SIZE,))
    source[:] = target[:] = vectors[0]
    return lambda: np.copyto(target, source)


def _merge(vectors: list[np.ndarray], rule: str, side: int, digests: bool) -> Callable[[], object]:
    theta, momentum, theta_out, momentum_out, *values = vectors
    layout = _layout(side)
    job = MergeJob(
        layout=layout,
        settings=MergeSettings(rule, "nesterov", 0.5, 0.5),
        key=Key(0, 0, 1),
        learners=tuple(range(LEARNERS)),
        ages=(0,) * LEARNERS,
        anchors=(theta,) * LEARNERS,
        values=tuple(values),
        weights=np.arange(1.0, LEARNERS + 1),
        theta=theta,
        state=momentum[None],
        steps=1,
        theta_out=theta_out,
        state_out=momentum_out[None],
    )
    scratch = aligned((scratch_size(layout),))
    return lambda: merge_fragment(job, scratch, digests)


def _layout(side: int) -> FragmentLayout:
    """One fragment of square matrices."""
    specs = [TensorSpec(f"matrix{i:02}", (side, side), "float32", "matrix", i) for i in range(SIZE // side**2)]
    return fragment(specs, 1, "balanced").layout(0)


def _by_turns(jobs: dict[str, Callable[[], object]], runs: int, turns: int) -> dict[str, list[float]]:
    """Seconds of each job's fastest turn in each run; what comes before the first run compiles and is not counted."""
    for job in jobs.values():
        job()
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(runs):
        fastest = dict.fromkeys(jobs, float("inf"))
        for _ in range(turns):
            for name, job in jobs.items():
                start = time.thread_time()
                job()
                fastest[name] = min(fastest[name], time.thread_time() - start)
        for name, value in fastest.items():
            seconds[name].append(value)
    return seconds


def main() -> int:
    """Print the table; 1 if a budget is missed."""
    rows = run()
    for row in rows:
        budget = "" if row.budget is None else f">= {row.budget:g}  {'met' if row.met else 'MISSED'}"
        print(f"{row.name:36} {row.value:8.3f} {row.unit:6} {budget}".rstrip())
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
