"""A learner's step and nothing else, in a process like a learner's: what a machine gives without an engine."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from workbench.config import ConfigError, from_toml
from workbench.engine.learner_process import compiled_arithmetic
from workbench.engine.links import Link
from workbench.training.flat import initial_weights
from workbench.training.learner_arithmetic import LearnerArithmetic
from workbench.training.threads import use_threads

PATIENCE_S = 3600.0


def main(link: Link, arguments: dict[str, Any]) -> int:
    """Step as ``arguments["learner"]`` of ``arguments["config"]`` (TOML) for as long as each request says."""
    try:
        arithmetic = _make(arguments["config"], arguments["learner"])
    except ConfigError as error:
        link.send({"failed": str(error)})
        return 2
    n = 0
    link.send({"ready": True})
    while (asked := link.receive(PATIENCE_S)) is not None:
        ends, tokens = [time.monotonic_ns()], 0
        while ends[-1] - ends[0] < asked["seconds"] * 1e9:
            n += 1
            tokens = arithmetic.step(n, n).tokens
            ends.append(time.monotonic_ns())
        link.send({"ends_ns": ends, "tokens": tokens, "peak_bytes": peak_bytes(), "pid": os.getpid()})
    return 0


def _make(toml: str, learner: int) -> LearnerArithmetic:
    """What a learner holds, its step compiled, every buffer touched."""
    config = from_toml(toml)
    use_threads(config.machine.threads)
    arithmetic = compiled_arithmetic(config, learner)
    arithmetic.load(initial_weights(config))
    arithmetic.publish()
    return arithmetic


def peak_bytes(pid: int | str = "self") -> int:
    """Most memory that a process ever had resident (VmHWM) [bytes]; 0 where the system does not tell.

    What a process shares with the one that it was forked from counts.
    """
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return 0
    found = [line.split()[1] for line in text.splitlines() if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 if found else 0
