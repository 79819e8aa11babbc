"""What the engine costs a learner: its tokens a second in a run over those of the same jitted step alone.

Run as ``python -m tests.benchmarks.bench_engine [PAIRS [WINDOW_S]]``.  A run with one learner, all syncing on and
evaluation off, and a process that only steps (threads, flags, niceness and memory settings the same) take turns: the
processes of the run are stopped while the other steps.  So a busy neighbour slows both, and the median over the pairs
counts.  A stopped run notices that it was stopped; what it does about that falls into the pause before a window.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.benchmarks.rows import Row, print_rows
from tests.benchmarks.windows import spread_of, stopped, tokens_per_s, watched
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


def run(pairs: int = PAIRS, window_s: float = WINDOW_S) -> list[Row]:
    """Measure by turns.

    Returns
    -------
    list of Row
        Both rates, their ratio and its interval, the peak memory of a learner of this model and of a tiny one.
    """
    config = preset("tiny-4").set(learners=1, rounds=10**6, eval_every=0)
    with tempfile.TemporaryDirectory() as name:
        engine, alone, peak = _by_turns(config, Path(name) / "run", pairs, window_s)
        tiny_peak = _peak_of(config.set(TINY_MODEL), Path(name) / "tiny")
    ratio = spread_of([one / other for one, other in zip(engine, alone, strict=True)])
    return [
        Row("one learner in the engine", median(engine), "tokens/s", None, True),
        Row("the same step alone", median(alone), "tokens/s", None, True),
        Row("learner in the engine over the step alone", ratio.middle, "ratio", BUDGET, ratio.middle >= BUDGET),
        Row("  95 % interval of this median: from", ratio.low, "ratio", None, True),
        Row("  to", ratio.high, "ratio", None, True),
        Row("peak memory of a learner (VmHWM), tiny-4", peak / 2**20, "MiB", None, True),
        Row("peak memory of a learner (VmHWM), tests' tiny model", tiny_peak / 2**20, "MiB", None, True),
    ]


def _by_turns(config: RunConfig, folder: Path, pairs: int, window_s: float) -> tuple[list[float], list[float], int]:
    """Tokens per second in the engine and alone, pair by pair, and the learner's peak memory [bytes]."""
    windows, alone = [], []
    with Reference(config) as reference, launch(config, folder) as run:
        run.wait(rounds=2 * config.fragments, timeout_s=START_S)
        pids = run.status()["processes"]
        for _ in range(pairs):
            with stopped(pids):
                alone.append(reference.measure(window_s)[0].tokens_per_s)
            time.sleep(SETTLE_S)
            windows.append(watched(run, window_s))
        peak = peak_bytes(run.status()["learners"][0]["pid"])
    records = read_journal(folder / "journal").records
    assert not [r for r in records if r.kind == Kind.LEARNER_LOST and r.reason != "ended"], "the learner was lost"
    return [tokens_per_s(records, window, 0) for window in windows], alone, peak


def _peak_of(config: RunConfig, folder: Path) -> int:
    """Peak memory of a learner after some merges [bytes]."""
    with launch(config, folder) as run:
        run.wait(rounds=5 * config.fragments, timeout_s=START_S)
        return peak_bytes(run.status()["learners"][0]["pid"])


if __name__ == "__main__":
    print_rows(run(*(int(word) for word in sys.argv[1:2]), *(float(word) for word in sys.argv[2:3])))
