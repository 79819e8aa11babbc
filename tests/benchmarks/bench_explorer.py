"""Schedules a second of the explorer, on one process and on two.

Run as ``python -m tests.benchmarks.bench_explorer [SCHEDULES]``.
"""

from __future__ import annotations

import sys
import time

from tests.benchmarks.rows import Row, print_rows
from workbench.simulate import explorer


def run(schedules: int = 100) -> list[Row]:
    """Explore the first ``schedules`` seeds."""
    rows = []
    for processes in (1, 2):
        began = time.perf_counter()
        report = explorer.explore(schedules, processes=processes)
        spent = time.perf_counter() - began
        name = f"explorer, {processes} process{'es' if processes > 1 else ''}"
        rows.append(Row(name, report.schedules / spent, "schedules/s", None, not report.failures))
        rows.append(Row(f"{name}: events", report.events / spent, "events/s", None, True))
    return rows


if __name__ == "__main__":
    print_rows(run(*(int(word) for word in sys.argv[1:2])))
