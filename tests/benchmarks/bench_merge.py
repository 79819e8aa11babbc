"""Merge and outer step against a plain memory copy: ``python -m tests.benchmarks.bench_merge``.

Eight contributions of 64 MB to one fragment of the shape that it has in a large model: matrices of 16 MB.  Bytes are
those that must move: each contribution, Theta and momentum read once, Theta and momentum written once.  The ratio is
taken within one run, copy and merge by turns, so that a busy machine slows both.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import numpy as np

from workbench.algorithms.codecs import CODECS
from workbench.algorithms.fragments import TensorSpec, fragment
from workbench.algorithms.syncer_arithmetic import MergeSettings, SyncerArithmetic

LEARNERS = 8
TENSORS = 4
TENSOR_SHAPE = (2048, 2048)
REPEATS = 9
BUDGETS = {"mean": 0.9, "rda": 0.6}


class Row(NamedTuple):
    """One line of the table; ``budget`` and ``met`` are None where nothing is promised."""

    name: str
    value: float
    unit: str
    budget: float | None
    met: bool | None


def run(repeats: int = REPEATS) -> list[Row]:
    """Measure, copy and merges by turns; medians.

    Returns
    -------
    list of Row
        Bytes per second over a copy's for mean and RDA with Nesterov, and what they rest on.
    """
    specs = [TensorSpec(f"block{i}", TENSOR_SHAPE, "float32", "matrix", i) for i in range(TENSORS)]
    theta, contributions = _inputs(fragment(specs, 1, "balanced").sizes[0])
    arithmetic = SyncerArithmetic(fragment(specs, 1, "balanced"), [theta])
    target = np.ones_like(theta)
    jobs: dict[str, Callable[[], object]] = {"copy": lambda: np.copyto(target, theta)}
    for rule in BUDGETS:
        jobs[rule] = _merge_job(arithmetic, contributions, MergeSettings(merge=rule))
    seconds = _by_turns(jobs, repeats)
    moved = {"copy": 2 * theta.nbytes} | dict.fromkeys(BUDGETS, (LEARNERS + 4) * theta.nbytes)
    rates = {name: moved[name] / seconds[name] for name in jobs}
    rows = [Row(f"{name}: rate", rates[name] / 1e9, "GB/s", None, None) for name in jobs]
    rows += [Row(f"{name}: time", seconds[name] * 1e3, "ms", None, None) for name in jobs]
    for rule, budget in BUDGETS.items():
        ratio = rates[rule] / rates["copy"]
        rows.append(Row(f"{rule} + Nesterov over a copy", ratio, "ratio", budget, ratio >= budget))
    return rows


def _inputs(size: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Theta and nearly orthogonal contributions, every page touched."""
    generator = np.random.default_rng(0)
    theta = generator.standard_normal(size, dtype=np.float32)
    noise = [generator.standard_normal(size, dtype=np.float32) for _ in range(LEARNERS)]
    return theta, [CODECS["f32"].decode(theta - np.float32(0.01) * v, None) for v in noise]


def _merge_job(
    arithmetic: SyncerArithmetic, contributions: list[np.ndarray], settings: MergeSettings
) -> Callable[[], object]:
    """Merge and commit the next version, digests of Theta and outer state included."""
    learners, weights = list(range(LEARNERS)), [float(w) for w in range(1, LEARNERS + 1)]

    def job() -> None:
        base = arithmetic.version(0)
        arithmetic.merge(0, base + 1, learners, contributions, weights, [base] * LEARNERS, settings)
        arithmetic.commit(0, base + 1)

    return job


def _by_turns(jobs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(repeats + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if turn:  # the first turn compiles and touches pages
                times[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in times.items()}


def main() -> int:
    """Print the table; 1 if a budget is missed."""
    rows = run()
    for row in rows:
        budget = "" if row.budget is None else f">= {row.budget:g}  {'met' if row.met else 'MISSED'}"
        print(f"{row.name:32} {row.value:9.3f} {row.unit:6} {budget}".rstrip())
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
