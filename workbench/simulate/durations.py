"""How long things take in virtual time: a pure function of (seed, learner, own step)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from workbench.algorithms import draws
from workbench.config import ConfigError, VirtualConfig
from workbench.config.files import read_text

SECOND = 1_000_000_000
STEP_S_MIN, STEP_S_MAX = 1e-6, 1e5
_STEPS = 1
_DELAYS = 2


COMMIT_NS = 100_000
COPY_NS, WRITE_NS = 5_000_000, 20_000_000


class Durations(Protocol):
    """How long everything takes [ns], and when processes are started."""

    def begin_ns(self, process: int) -> int:
        """When a process is started first."""

    def start_ns(self, learner: int, number: int) -> int:
        """From the start of a learner's process to its machine."""

    def adopt_ns(self, learner: int, number: int, source: str) -> int:
        """Until a new process holds its first state (``initial``, ``own``), or a later one (``peer``, ``snapshot``)."""

    def copy_ns(self, learner: int, number: int, snapshot: bool) -> int:
        """Until the copy of a learner's state lies there encoded: for request, or for snapshot, ``number``."""

    def write_ns(self, snapshot: int) -> int:
        """Until a snapshot whose parts are there lies on disk."""

    def step_ns(self, learner: int, n: int) -> int:
        """From a boundary to the end of own step ``n``, injected slow-downs left out."""

    def pause_ns(self, learner: int, n: int) -> int:
        """How much of that passes before the step itself begins."""

    def delay_ns(self, count: int) -> int:
        """One-way delay of what is no message, when ``count`` messages have been sent."""

    def message_ns(self, learner: int, direction: int, message: Any, count: int) -> int:
        """One-way delay of a learner's message, or of one to it, the ``count``-th of all."""

    def merge_ns(self, fragment: int, round_: int) -> int:
        """One merge."""

    def commit_ns(self, fragment: int, round_: int) -> int:
        """Until a merged version is the current one."""

    def handed_ns(self, learner: int, fragment: int, version: int) -> int:
        """Until the transport has taken an UPDATE whose channel is free."""

    def gone_ns(self, learner: int, number: int, count: int) -> int:
        """Until the syncer sees the socket of a killed process closed, when ``count`` messages have been sent."""

    def ended_ns(self, learner: int, number: int) -> int:
        """Until the supervisor sees that a killed process has ended."""

    def late_ns(self, rounds: Sequence[int]) -> int:
        """How late the syncer wakes for the end of the grace windows of these rounds, or for anything else (none)."""


class StepTimes:
    """Durations of a configuration.

    Parameters
    ----------
    config : VirtualConfig
        Model and numbers.
    seed : int
        Sub-seed of the run.
    """

    def __init__(self, config: VirtualConfig, seed: int) -> None:
        self.config = config
        self.seed = seed
        self.trace = read_trace(config.trace) if config.step_model == "trace" else {}

    def step_ns(self, learner: int, n: int) -> int:
        """Duration of own step ``n`` [ns], injected slow-downs left out."""
        c = self.config
        factor = c.slow[learner] if learner < len(c.slow) else 1.0
        if c.step_model == "trace":
            mine = self.trace.get(learner) or self.trace[-1]
            return int(mine[(n - 1) % len(mine)] * factor * SECOND)
        mean = c.step_s * factor * SECOND
        if c.step_model == "fixed" or c.jitter == 0.0:
            return int(mean)
        z = draws.gaussian(self.seed, _STEPS, learner, n)
        if c.step_model == "jitter":
            return int(max(mean * (1.0 + c.jitter * z), 0.05 * mean))
        sigma = math.sqrt(math.log1p(c.jitter**2))
        return int(mean * math.exp(sigma * z - 0.5 * sigma**2))

    def begin_ns(self, process: int) -> int:
        """Everything begins at once."""
        return 0

    def start_ns(self, learner: int, number: int) -> int:
        """``start_s`` [ns]."""
        return int(self.config.start_s * SECOND)

    def adopt_ns(self, learner: int, number: int, source: str) -> int:
        """A state is there at once."""
        return 0

    def copy_ns(self, learner: int, number: int, snapshot: bool) -> int:
        """Five milliseconds [ns]."""
        return COPY_NS

    def write_ns(self, snapshot: int) -> int:
        """Twenty milliseconds [ns]."""
        return WRITE_NS

    def pause_ns(self, learner: int, n: int) -> int:
        """A step begins at once."""
        return 0

    def merge_ns(self, fragment: int, round_: int) -> int:
        """``merge_s`` [ns]."""
        return int(self.config.merge_s * SECOND)

    def commit_ns(self, fragment: int, round_: int) -> int:
        """A tenth of a millisecond [ns]."""
        return COMMIT_NS

    def handed_ns(self, learner: int, fragment: int, version: int) -> int:
        """A channel that is free takes an UPDATE at once."""
        return 0

    def gone_ns(self, learner: int, number: int, count: int) -> int:
        """A message's delay [ns]."""
        return self.delay_ns(count)

    def ended_ns(self, learner: int, number: int) -> int:
        """At once."""
        return 0

    def late_ns(self, rounds: Sequence[int]) -> int:
        """Nobody wakes late."""
        return 0

    def message_ns(self, learner: int, direction: int, message: Any, count: int) -> int:
        """One-way delay of the ``count``-th message, whatever it is [ns]."""
        return self.delay_ns(count)

    def delay_ns(self, count: int) -> int:
        """One-way delay of the ``count``-th message [ns]."""
        c = self.config
        if c.delay_jitter == 0.0:
            return int(c.delay_s * SECOND)
        z = draws.gaussian(self.seed, _DELAYS, count)
        return int(max(c.delay_s * (1.0 + c.delay_jitter * z), 0.1 * c.delay_s) * SECOND)


def read_trace(path: str) -> dict[int, list[float]]:
    """Durations [s] by learner from a file; -1 holds those of lines that name no learner.

    Where every line names one, -1 holds all of them, for learners that the file does not name.

    Raises
    ------
    ConfigError
        No such file, or a line that is neither ``seconds`` nor ``learner,seconds``.
    """
    found: dict[int, list[float]] = {}
    for number, line in enumerate(read_text(path, "virtual.trace =").splitlines(), 1):
        if line.strip():
            learner, seconds = _trace_line(line, f"{path} line {number}")
            found.setdefault(learner, []).append(seconds)
    if not found:
        raise ConfigError(f"{path} holds no durations; one number of seconds per line is expected")
    if -1 not in found:
        found[-1] = [s for times in found.values() for s in times]
    return found


def _trace_line(line: str, where: str) -> tuple[int, float]:
    """Learner (-1 for none) and duration [s] of one line."""
    try:
        *named, last = line.split(",")
        learner, seconds = (int(named[0]) if named else -1), float(last)
        if len(named) > 1 or (named and learner < 0):
            raise ValueError(line)
    except ValueError as error:
        raise ConfigError(f"{where}: {line.strip()!r} is not 'seconds' or 'learner,seconds'") from error
    if not STEP_S_MIN <= seconds <= STEP_S_MAX:
        raise ConfigError(f"{where}: a step of {seconds} s; allowed: {STEP_S_MIN:g} to {STEP_S_MAX:g}")
    return learner, seconds
