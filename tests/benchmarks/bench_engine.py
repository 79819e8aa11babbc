"""What the engine costs a learner: its tokens a second in a run over those of the same jitted step alone.

Run as ``python -m tests.benchmarks.bench_engine [PAIRS [WINDOW_S]]``.  A run with one learner, all syncing on and
evaluation off, and a process that only steps (threads, flags, niceness and memory settings the same) take turns: the
processes of the run are stopped while the other steps.  So a busy neighbour slows both, and the median over the pairs
counts.  A stopped run notices that it was stopped; what it does about that falls into the pause before a window.

The budget is for a learner with one thread whose core nothing else uses (``machine.cores = apart``).  Where nothing is
pinned, threads that wake up push the step aside although another core is idle; with more threads, on as few cores as
there are threads, syncer and recorder take processor time that the device would use.  Both are printed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from tests.benchmarks.rows import Row, print_rows
from tests.benchmarks.windows import spread_of, stepping_s, steps_s, stopped, watched
from workbench.config import RunConfig, preset
from workbench.engine.launch import launch
from workbench.engine.reference import Reference
from workbench.engine.reference_process import peak_bytes
from workbench.protocol.records import Kind
from workbench.tape.frames import read_journal

BUDGET = 0.97
PAIRS, WINDOW_S, SETTLE_S = 20, 2.0, 0.5
START_S = 120.0
TINY_MODEL = {
    "model.layers": 1, "model.width": 16, "model.heads": 2, "model.kv_heads": 1, "model.mlp": 32, "model.context": 16,
    "inner.batch": 2,
}  # fmt: skip


class Place(NamedTuple):
    """Threads and cores of a learner."""

    words: str
    threads: int | None
    cores: str
    budget: float | None


PLACES = (
    Place("1 thread apart", 1, "apart", BUDGET),
    Place("1 thread", 1, "none", None),
    Place("JAX's threads", None, "none", None),
)


class Measured(NamedTuple):
    """Both ways to step, window by window.

    Attributes
    ----------
    engine, alone : list of list of float
        Durations of steps [s].
    engine_cpu_s, alone_cpu_s : float
        Processor time of the threads that step, in all windows [s].
    peak : int
        Of the learner's memory [bytes].
    """

    engine: list[list[float]]
    alone: list[list[float]]
    engine_cpu_s: float
    alone_cpu_s: float
    peak: int


def run(pairs: int = PAIRS, window_s: float = WINDOW_S) -> list[Row]:
    """Measure by turns.

    Returns
    -------
    list of Row
        With one thread on a core of its own, with one that is not pinned, and with as many as JAX takes: both rates,
        their ratio and its interval, and the ratio of the processor time that a step takes of the threads that step,
        which a busy machine disturbs less; then the peak memory of a learner of this model and of a tiny one.
    """
    config = preset("tiny-4").set(learners=1, rounds=10**6, eval_every=0)
    rows, peak = [], 0
    with tempfile.TemporaryDirectory() as name:
        for place in PLACES:
            placed = config.set({"machine.threads": place.threads, "machine.cores": place.cores})
            measured = _by_turns(placed, Path(name) / place.words, pairs, window_s)
            peak = max(peak, measured.peak)
            rows += _rows(measured, config, place)
        tiny_peak = _peak_of(config.set(TINY_MODEL), Path(name) / "tiny")
    return [
        *rows,
        Row("peak memory of a learner (VmHWM), tiny-4", peak / 2**20, "MiB", None, True),
        Row("peak memory of a learner (VmHWM), tests' tiny model", tiny_peak / 2**20, "MiB", None, True),
    ]


def _rows(measured: Measured, config: RunConfig, place: Place) -> list[Row]:
    tokens = config.inner.batch * config.inner.accumulation * config.model.context
    engine, alone = ([tokens / mean(steps) for steps in windows] for windows in (measured.engine, measured.alone))
    ratio = spread_of([one / other for one, other in zip(engine, alone, strict=True)])
    engine_cpu_s = measured.engine_cpu_s / sum(map(len, measured.engine))
    alone_cpu_s = measured.alone_cpu_s / sum(map(len, measured.alone))
    budget = place.budget
    return [
        Row(f"learner in the engine, {place.words}", median(engine), "tokens/s", None, True),
        Row("  the same step alone", median(alone), "tokens/s", None, True),
        Row("  in the engine over alone", ratio.middle, "ratio", budget, budget is None or ratio.middle >= budget),
        Row("  95 % interval of this median: from", ratio.low, "ratio", None, True),
        Row("  to", ratio.high, "ratio", None, True),
        Row("  by processor time of what steps", alone_cpu_s / engine_cpu_s, "ratio", None, True),
    ]


def _by_turns(config: RunConfig, folder: Path, pairs: int, window_s: float) -> Measured:
    windows, alone, engine_cpu_s, alone_cpu_s = [], [], 0.0, 0.0
    with Reference(config) as reference, launch(config, folder) as run:
        run.wait(rounds=2 * config.fragments, timeout_s=START_S)
        pids, learner = run.status()["processes"], run.status()["learners"][0]["pid"]
        other = reference.measure(SETTLE_S)[0].pid
        for _ in range(pairs):
            with stopped(pids):
                alone_cpu_s -= stepping_s(other, network=False)
                alone.append(reference.measure(window_s)[0].steps_s)
                alone_cpu_s += stepping_s(other, network=False)
            time.sleep(SETTLE_S)
            engine_cpu_s -= stepping_s(learner, network=True)
            windows.append(watched(run, window_s))
            engine_cpu_s += stepping_s(learner, network=True)
        peak = peak_bytes(learner)
    records = read_journal(folder / "journal").records
    assert not [r for r in records if r.kind == Kind.LEARNER_LOST and r.reason != "ended"], "the learner was lost"
    engine = [steps_s(records, window, 0) for window in windows]
    return Measured(engine, alone, engine_cpu_s, alone_cpu_s, peak)


def _peak_of(config: RunConfig, folder: Path) -> int:
    """Peak memory of a learner after some merges [bytes]."""
    with launch(config, folder) as run:
        run.wait(rounds=5 * config.fragments, timeout_s=START_S)
        return peak_bytes(run.status()["learners"][0]["pid"])


if __name__ == "__main__":
    print_rows(run(*(int(word) for word in sys.argv[1:2]), *(float(word) for word in sys.argv[2:3])))
