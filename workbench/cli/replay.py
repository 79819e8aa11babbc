"""Recompute a run from its tape and compare every recorded digest.

Exit code 0: bit for bit the same; 1: it differs, and the first event is named.
On another machine, or with other versions, the entries that differ are named,
and losses and norms are compared within 1e-6.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli import options
from workbench.config import ConfigError

if TYPE_CHECKING:
    from workbench.replay.exact import ReplayReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench replay``."""
    options.add_run(parser)
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the final weights there (.npz)")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Replay, print what was compared, return 0 if nothing differs and 1 if something does."""
    if arguments.out is not None and not arguments.out.resolve().parent.is_dir():
        raise ConfigError(f"--out {arguments.out}: the folder {arguments.out.resolve().parent} does not exist")

    from workbench.cli import output
    from workbench.replay.exact import replay

    with output.progress("merges replayed") as report:
        result = replay(arguments.run, progress=lambda done, total: report(done, total, ""))
    if arguments.out is not None:
        write_weights(arguments.out, result.weights())
    if arguments.json:
        output.print_json(result.to_json())
    else:
        output.console().print(report_table(result, arguments.out))
    return 0 if result.bit_exact else 1


def report_table(result: ReplayReport, out: Path | None) -> Any:
    """Return the outcome of a replay as a table."""
    from workbench.cli import output

    rows = [
        ("bit-exact", result.bit_exact),
        ("verdict", result.verdict),
        ("merges on the tape", result.merges),
        ("merges compared", result.merges_compared),
        ("digest of the final weights", digest_text(result.final_digest)),
    ]
    if result.first_difference is not None:
        rows.append(("first difference", result.first_difference))
    if out is not None:
        rows.append(("final weights", str(out)))
    return output.pairs("replay", rows)


def digest_text(digest: int | str) -> str:
    """Return a 64-bit digest as 16 hexadecimal digits."""
    return digest if isinstance(digest, str) else f"{digest:016x}"


def write_weights(path: Path, weights: Mapping[str, Any]) -> None:
    """Write arrays by name as an npz file, whole or not at all."""
    import numpy as np

    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            np.savez(file, allow_pickle=False, **weights)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
