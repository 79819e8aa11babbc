"""Inner steps a second of an exact replay, over those of the run that it replays, in one process and with workers.

Run as ``python -m tests.benchmarks.bench_replay [ROUNDS [REPEATS]]``.  Run and replay take turns, so that a busy
machine slows both; a first run, not counted, compiles and reads the text, and workers are asked for merge 0 first.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.benchmarks.rows import Row, print_rows
from workbench.config import RunConfig, preset
from workbench.protocol.records import Kind
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.simulate.training_run import train_virtual
from workbench.tape import open_tape

BUDGET = 0.9
BUDGET_WORKERS = 1.0
WORKERS = 2


def run(rounds: int = 60, repeats: int = 3) -> list[Row]:
    """Train ``tiny-4`` for ``rounds`` merges and replay it, by turns.

    Returns
    -------
    list of Row
        Steps a second of both, summed over the learners, and the median of their ratios; the machines' records a
        second.
    """
    config = preset("tiny-4").set(rounds=rounds, eval_every=0)
    ratios, live, replayed, records, shared, started = [], [], [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        _turn(config.set(rounds=config.fragments), Path(name) / "warm")
        for repeat in range(repeats):
            live_s, replay_s, steps, machines_s, compared = _turn(config, Path(name) / str(repeat))
            ratios.append(live_s / replay_s)
            live.append(steps / live_s)
            replayed.append(steps / replay_s)
            records.append(compared / machines_s)
            start_s, rate = _with_workers(Path(name) / str(repeat))
            started.append(start_s)
            shared.append(rate * live_s / steps)
    ratio, both = median(ratios), median(shared)
    return [
        Row("run in virtual time, sum of its learners", median(live), "steps/s", None, True),
        Row("exact replay, one process", median(replayed), "steps/s", None, True),
        Row("exact replay over the run", ratio, "ratio", BUDGET, ratio >= BUDGET),
        Row(f"exact replay over the run, {WORKERS} workers", both, "ratio", BUDGET_WORKERS, both >= BUDGET_WORKERS),
        Row(f"start of {WORKERS} workers, up to merge 0", median(started), "s", None, True),
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


def _with_workers(folder: Path) -> tuple[float, float]:
    """Seconds to start workers and come to merge 0, and their inner steps a second from there to the end."""
    began = time.perf_counter()
    tape = open_tape(folder)
    session = replay(tape, workers=WORKERS)
    session.weights(0)
    there = time.perf_counter()
    before = tape.wb.past(int(tape["merges"].dataset["event"].values[0])).mask()
    done = int(before[tape["events"].dataset["kind"].values == Kind.STEP_ENDED].sum())
    report = session.verify()
    return there - began, (report.steps - done) / (time.perf_counter() - there)


if __name__ == "__main__":
    print_rows(run(*(int(word) for word in sys.argv[1:3])))
