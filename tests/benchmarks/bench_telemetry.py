"""What a subscriber that drains the telemetry costs a run: tokens a second with one over those without.

Run as ``python -m tests.benchmarks.bench_telemetry [PAIRS [WINDOW_S]]``.  In one run of two learners a process at the
niceness of a page subscribes and leaves by turns; within a pair now the one, now the other comes first.  Beside the
ratio stands the syncer's time on the processor, which a busy machine disturbs less.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean, median

from tests.benchmarks.rows import Row, print_rows
from tests.benchmarks.windows import Window, spread_of, steps_s, watched
from workbench.config import preset
from workbench.engine import control
from workbench.engine.launch import Run, launch
from workbench.engine.telemetry import Telemetry
from workbench.tape.frames import read_journal

LEARNERS = 2
BUDGET = 0.99
PAIRS, WINDOW_S, SETTLE_S = 16, 3.0, 0.4
START_S = 120.0


def run(pairs: int = PAIRS, window_s: float = WINDOW_S) -> list[Row]:
    """Measure by turns.

    Returns
    -------
    list of Row
        The ratio and its interval, records shown and not shown, the syncer's processor time with and without.
    """
    config = preset("tiny-4").set(learners=LEARNERS, rounds=10**6, eval_every=0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        with launch(config, folder) as run:
            run.wait(rounds=2 * config.fragments, timeout_s=START_S)
            measured = _by_turns(run, pairs, window_s)
        records = read_journal(folder / "journal").records

    def rate(window: Window) -> float:
        return sum(1 / mean(steps_s(records, window, m)) for m in range(LEARNERS))

    ratio = spread_of([rate(on) / rate(off) for on, off in zip(measured.on, measured.off, strict=True)])
    return [
        Row(
            "two learners, tokens/s with a subscriber over without",
            ratio.middle,
            "ratio",
            BUDGET,
            ratio.middle >= BUDGET,
        ),
        Row("  95 % interval of this median: from", ratio.low, "ratio", None, True),
        Row("  to", ratio.high, "ratio", None, True),
        Row("syncer's processor time with a subscriber", 100 * median(measured.cpu_on), "% of a core", None, True),
        Row("syncer's processor time without", 100 * median(measured.cpu_off), "% of a core", None, True),
        Row("records shown", measured.shown, "records", None, True),
        Row("records not shown", measured.missed, "records", 0, measured.missed == 0),
    ]


class Measured:
    """Windows with and without a subscriber, and the syncer's share of a core in them."""

    def __init__(self) -> None:
        self.on: list[Window] = []
        self.off: list[Window] = []
        self.cpu_on: list[float] = []
        self.cpu_off: list[float] = []
        self.shown = self.missed = 0


def _by_turns(run: Run, pairs: int, window_s: float) -> Measured:
    measured = Measured()
    syncer = run.status()["syncer"]["pid"]
    context = multiprocessing.get_context("spawn")
    pipe, end = context.Pipe()
    other = context.Process(target=_subscriber, args=(end, control.address_of(run.path).runtime))
    other.start()
    pipe.recv()

    def look(listening: bool) -> None:
        pipe.send(listening)
        time.sleep(SETTLE_S)
        before = processor_s(syncer)
        window = watched(run, window_s)
        share = (processor_s(syncer) - before) / (window.end_s - window.begin_s)
        (measured.on if listening else measured.off).append(window)
        (measured.cpu_on if listening else measured.cpu_off).append(share)

    for pair in range(pairs):
        for listening in (True, False) if pair % 2 else (False, True):
            look(listening)
    pipe.send(None)
    measured.shown, measured.missed = pipe.recv()
    other.join()
    return measured


def _subscriber(pipe: Connection, runtime: str) -> None:
    """Subscribe, drain and leave as the pipe says."""
    os.nice(10)
    pipe.send("here")
    shown = missed = 0
    telemetry: Telemetry | None = None
    while True:
        if pipe.poll(0.0 if telemetry else None):
            asked = pipe.recv()
            if telemetry is not None:
                missed += telemetry.missed
                telemetry.close()
            telemetry = Telemetry(Path(runtime)) if asked else None
            if asked is None:
                pipe.send((shown, missed))
                return
        if telemetry is not None:
            shown += sum(len(batch.records) for batch in telemetry.take(0.1))


def processor_s(pid: int) -> float:
    """Time that a process has had on a processor [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    print_rows(run(*(int(word) for word in sys.argv[1:2]), *(float(word) for word in sys.argv[2:3])))
