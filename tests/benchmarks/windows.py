"""Windows of time in a run of real processes, and what its learners did in them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

from workbench.engine.launch import Run
from workbench.protocol.records import FIRST_LEARNER, Kind, Record


class Window(NamedTuple):
    """Begin and end, on the clock of the run's records [s]."""

    begin_s: float
    end_s: float


class Spread(NamedTuple):
    """Median of some ratios, and where 95 % of medians like it lie (order statistics, no distribution assumed)."""

    middle: float
    low: float
    high: float


def watched(run: Run, seconds: float) -> Window:
    """Let the run go on for so long."""
    begin: float = run.status()["elapsed_s"]
    time.sleep(seconds)
    return Window(begin, run.status()["elapsed_s"])


@contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    """Hold processes still."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def steps_s(records: Sequence[Record], window: Window, learner: int) -> list[float]:
    """Times from the end of one step of a learner to that of the next in a window [s]."""
    ended = [
        record.detail["end_ns"] / 1e9
        for record in records
        if record.kind == Kind.STEP_ENDED
        and record.process == FIRST_LEARNER + learner
        and window.begin_s <= record.detail["end_ns"] / 1e9 <= window.end_s
    ]
    assert len(ended) > 2, f"L{learner} made {len(ended)} steps in {window}: the machine is too busy for a figure"
    return [end - begin for begin, end in pairwise(ended)]


def stepping_s(pid: int, network: bool) -> float:
    """Processor time of the threads of a process that step: the device's, and the one that drives it [s].

    Parameters
    ----------
    pid : int
    network : bool
        Whether the main thread serves the network, as in a learner, instead of driving the device.
    """
    spent_ns = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (network and task.name == str(pid)) or (task / "comm").read_text().startswith("ZMQ"):
            continue
        spent_ns += int((task / "schedstat").read_text().split()[0])
    return spent_ns / 1e9


def spread_of(ratios: Sequence[float]) -> Spread:
    """Median with its interval: the order statistics n/2 -+ 0.98 sqrt(n)."""
    ordered = sorted(ratios)
    count = len(ordered)
    reach = 0.98 * count**0.5
    low, high = max(0, round(count / 2 - reach) - 1), min(count - 1, round(count / 2 + reach))
    return Spread(median(ordered), ordered[low], ordered[high])
