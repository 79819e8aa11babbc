"""Inner steps a second of an exact replay, over those of the run that it replays, in one process.

Run as ``python -m tests.benchmarks.bench_replay [ROUNDS [REPEATS]]``.  Run and replay take turns, so that a busy
machine slows both; a first run, not counted, compiles and reads the text.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.benchmarks.rows import Row, print_rows
from workbench.config import RunConfig, preset
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.simulate.training_run import train_virtual

BUDGET = 0.9


def run(rounds: int = 60, repeats: int = 3) -> list[Row]:
    """Train ``tiny-4`` for ``rounds`` merges and replay it, by turns.

    Returns
    -------
    list of Row
        Steps a second of both, summed over the learners, and the median of their ratios; the machines' records a
        second.
    """
    config = preset("tiny-4").set(rounds=rounds, eval_every=0)
    ratios, live, replayed, records = [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        _turn(config.set(rounds=config.fragments), Path(name) / "warm")
        for repeat in range(repeats):
            live_s, replay_s, steps, machines_s, compared = _turn(config, Path(name) / str(repeat))
            ratios.append(live_s / replay_s)
            live.append(steps / live_s)
            replayed.append(steps / replay_s)
            records.append(compared / machines_s)
    ratio = median(ratios)
    return [
        Row("run in virtual time, sum of its learners", median(live), "steps/s", None, True),
        Row("exact replay, one process", median(replayed), "steps/s", None, True),
        Row("exact replay over the run", ratio, "ratio", BUDGET, ratio >= BUDGET),
        Row("syncer's machine run again", median(records), "records/s", None, True),
    ]


def _turn(config: RunConfig, folder: Path) -> tuple[float, float, int, float, int]:
    """Seconds of a run and of its replay, steps, seconds of its machine's re-run, records compared."""
    trained = train_virtual(config, folder)
    began = time.perf_counter()
    report = replay(folder).verify()
    replay_s = time.perf_counter() - began
    began = time.perf_counter()
    machines = rerun_machines(folder)
    assert machines.equal, machines.first_difference
    return trained.wall_s, replay_s, report.steps, time.perf_counter() - began, machines.compared


if __name__ == "__main__":
    print_rows(run(*(int(word) for word in sys.argv[1:3])))
