"""What a machine does with the jitted step alone: the reference of a run's throughput (DESIGN section 9).

As many processes as there are learners, started as learners are (nursery, niceness, memory settings, threads, cores),
make the same steps at the same time; nobody sends, merges or writes anything.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import NamedTuple

from workbench.config import ConfigError, RunConfig, to_toml
from workbench.engine.links import Link
from workbench.engine.placing import check_cores, environment_of, place_of
from workbench.engine.processes import Managed, Nursery
from workbench.protocol.records import label_of, process_of

START_LIMIT_S = 300.0
GRACE_S = 120.0
"""How much longer than asked for a measurement may take: one step of a large model."""


class Measured(NamedTuple):
    """What one process did in one measurement.

    Attributes
    ----------
    ends_ns : list of int
        Monotonic time of the begin, then of the end of each step [ns].
    tokens : int
        Of one step.
    peak_bytes : int
        Most memory that the process ever had resident.
    pid : int
    """

    ends_ns: list[int]
    tokens: int
    peak_bytes: int
    pid: int

    @property
    def steps_s(self) -> list[float]:
        """Duration of each step [s]."""
        return [(end - begin) / 1e9 for begin, end in zip(self.ends_ns, self.ends_ns[1:], strict=False)]

    @property
    def tokens_per_s(self) -> float:
        """Rate over the whole measurement [tokens/s]."""
        spent_s = (self.ends_ns[-1] - self.ends_ns[0]) / 1e9
        return (len(self.ends_ns) - 1) * self.tokens / spent_s


class ReferenceFailed(RuntimeError):
    """A process of the reference ended before it was done."""


class Reference:
    """Processes that make steps when asked.

    Parameters
    ----------
    config : RunConfig
    learners : int
        How many at once; by default those of the configuration.

    Raises
    ------
    ConfigError
        The configuration cannot work on this machine.
    ReferenceFailed
        A process ended; with the last line that it wrote.
    """

    def __init__(self, config: RunConfig, learners: int | None = None) -> None:
        check_cores(config)
        count = config.learners if learners is None else learners
        self._logs = tempfile.TemporaryDirectory(prefix="workbench-reference-")
        self._nursery = Nursery(Path(self._logs.name))
        self._all = [Managed("reference", label_of(process_of(m)), process_of(m), m) for m in range(count)]
        toml = to_toml(config)
        try:
            for one in self._all:
                arguments = {"config": toml, "learner": one.learner}
                self._nursery.start(one, arguments, environment_of(config, "learner"), place_of(config, one.learner))
            for one in self._all:
                self._answer(one, START_LIMIT_S)
        except BaseException:
            self.close()
            raise

    def measure(self, seconds: float) -> list[Measured]:
        """Let all step at once for so long; what each of them did."""
        for one in self._all:
            _link(one).send({"seconds": seconds})
        answers = [self._answer(one, seconds + GRACE_S) for one in self._all]
        return [Measured(a["ends_ns"], a["tokens"], a["peak_bytes"], a["pid"]) for a in answers]

    def _answer(self, one: Managed, limit_s: float) -> dict:
        began = time.monotonic()
        answer = _link(one).receive(limit_s)
        if answer is None:
            why = self._last_line(one) or f"no answer within {time.monotonic() - began:.0f} s"
            raise ReferenceFailed(f"the step alone could not be measured: {one.label}: {why}")
        if "failed" in answer:
            raise ConfigError(answer["failed"])
        return answer

    def _last_line(self, one: Managed) -> str:
        lines: list[str] = []
        for name in (one.label, "nursery"):
            path = Path(self._logs.name) / f"{name}.log"
            lines = lines or (path.read_text(errors="replace").split("\n") if path.exists() else [])
            lines = [line for line in lines if line.strip()]
        return lines[-1].strip() if lines else ""

    def close(self) -> None:
        """End the processes."""
        for one in self._all:
            if one.link is not None:
                one.link.close()
        self._nursery.end()
        self._logs.cleanup()

    def __enter__(self) -> Reference:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _link(one: Managed) -> Link:
    assert one.link is not None
    return one.link


class Rates(NamedTuple):
    """The step alone with a number of learners.

    Attributes
    ----------
    learners : int
    tokens_per_s : float
        Median over the learners [tokens/s].
    tokens_per_s_all : float
        Their sum.
    step_s, step_p95_s : float
        Median and 95th percentile over all steps [s].
    peak_bytes : int
        Largest peak of a process.
    """

    learners: int
    tokens_per_s: float
    tokens_per_s_all: float
    step_s: float
    step_p95_s: float
    peak_bytes: int


def rates_of(measured: list[Measured]) -> Rates:
    """Sum up what several processes did at once."""
    rates = [one.tokens_per_s for one in measured]
    steps = sorted(step for one in measured for step in one.steps_s)
    return Rates(
        len(measured),
        median(rates),
        sum(rates),
        median(steps),
        steps[min(len(steps) - 1, int(0.95 * len(steps)))],
        max(one.peak_bytes for one in measured),
    )
