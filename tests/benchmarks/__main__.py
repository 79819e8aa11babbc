"""All benchmarks: ``python -m tests.benchmarks [NAME ...] [--out FILE]`` prints every figure beside its budget.

Exit code 1 if a budget is missed.  Figures depend on the machine; budgets are ratios of one run.  ``--out`` keeps the
figures, with what they depend on and how busy the machine was, as JSON (``tests/benchmarks/results``).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.benchmarks.rows import print_rows

BENCHMARKS = ("merge", "tape", "explorer", "replay", "wire", "engine", "telemetry")
PACKAGES = ("jax", "jaxlib", "numpy", "numba", "pyzmq", "icechunk")


def main(words: list[str]) -> int:
    """Run the named benchmarks, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--out", type=Path, help="write the figures, too")
    arguments = parser.parse_args(words)
    unknown = [name for name in arguments.names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    load = [os.getloadavg()[0]]
    rows: list[Any] = []
    for name in arguments.names or BENCHMARKS:
        found = import_module(f"tests.benchmarks.bench_{name}").run()
        print_rows(found)
        rows += found
        load.append(os.getloadavg()[0])
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(_kept(words, rows, load), indent=1) + "\n", encoding="utf-8")
    return 1 if any(row[4] is False for row in rows) else 0


def _kept(words: list[str], rows: list[Any], load: list[float]) -> dict[str, Any]:
    """Figures to three digits, and what they depend on; ``load``: averages before the first and after each."""
    return {
        "command": " ".join(["python -m tests.benchmarks", *words]),
        "python": platform.python_version(),
        "packages": {package: version(package) for package in PACKAGES},
        "cores": len(os.sched_getaffinity(0)),
        "load_averages": load,
        "rows": [
            {"name": row[0].strip(), "value": float(f"{row[1]:.4g}"), "unit": row[2], "budget": row[3], "met": row[4]}
            for row in rows
        ],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
