"""All benchmarks: ``python -m tests.benchmarks [NAME ...]`` prints every figure beside its budget.

Exit code 1 if a budget is missed.  Figures depend on the machine; budgets are ratios of one run.
"""

from __future__ import annotations

import sys
from importlib import import_module

from tests.benchmarks.rows import print_rows

BENCHMARKS = ("merge", "tape", "explorer", "replay", "wire", "engine", "telemetry")


def main(names: list[str]) -> int:
    """Run the named benchmarks, all by default."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    missed = 0
    for name in names or BENCHMARKS:
        rows = import_module(f"tests.benchmarks.bench_{name}").run()
        print_rows(rows)
        missed += sum(not row[4] for row in rows)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
