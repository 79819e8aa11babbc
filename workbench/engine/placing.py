"""Threads and cores of the processes of a run (keys ``machine.*``); how nice they are is in `processes.NICE`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from workbench.config import ConfigError, RunConfig
from workbench.config.cores import APART, NOWHERE, apart, cores_of, parse_cores
from workbench.training.threads import thread_variable, thread_variables

COMPUTING = ("prepare", "learner", "evaluator")
"""Roles that use a device."""


def environment_of(config: RunConfig, role: str) -> dict[str, str]:
    """Variables that a process of this role needs before it uses its device."""
    return thread_variables(threads_of(config)) if role in COMPUTING else {}


def threads_of(config: RunConfig) -> int | None:
    """Threads of a device: as configured, else a learner's share of the cores; None where JAX decides.

    JAX takes a thread for each core that a process may use.  With as many learners as cores, or more, one each was
    faster by a sixth (tiny-4 on two cores).
    """
    machine = config.machine
    if machine.threads is not None:
        return machine.threads
    if thread_variable() or parse_cores(machine.cores):
        return None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if machine.cores == APART:
        return max(1, (cores - 1) // config.learners)
    share = max(1, cores // config.learners)
    return share if share < cores else None


def place_of(config: RunConfig, learner: int) -> tuple[int, ...]:
    """Cores that a process stays on, empty for all; added learners are placed as ``m mod learners``.

    What is no learner is pinned only by ``apart``, to the cores that the learners' steps leave.
    """
    if config.machine.cores == APART:
        return _apart(config)[learner % config.learners if learner >= 0 else -1]
    if learner < 0 or not hasattr(os, "sched_getaffinity"):
        return ()
    return cores_of(config.machine.cores, learner % config.learners, config.learners, sorted(os.sched_getaffinity(0)))


def beside_steps(config: RunConfig) -> tuple[int, ...]:
    """Cores of a learner's threads that do not step, empty for those of its process."""
    return _apart(config)[-1] if config.machine.cores == APART else ()


def _apart(config: RunConfig) -> list[tuple[int, ...]]:
    available = sorted(os.sched_getaffinity(0))
    return apart(config.learners, threads_of(config) or max(1, len(available) - 1), available)


def fingerprint_there(fingerprint: Mapping[str, Any], cores: tuple[int, ...]) -> dict[str, Any]:
    """The run's fingerprint as it is in a process that stays on these cores."""
    return {**fingerprint, **({"visible_cores": str(len(cores))} if cores else {})}


def check_cores(config: RunConfig) -> None:
    """Refuse cores that this process, and so the run, may not use.

    Raises
    ------
    ConfigError
        With the cores there are.
    """
    text = config.machine.cores
    if text == NOWHERE:
        return
    if not hasattr(os, "sched_getaffinity"):
        raise ConfigError(f"machine.cores = {text!r}: this system pins no process; allowed here: {NOWHERE}")
    available = sorted(os.sched_getaffinity(0))
    if text == APART:
        try:
            _apart(config)
        except ValueError as error:
            raise ConfigError(
                f"machine.cores = {APART!r}: {error}; set machine.threads or learners lower, or machine.cores = spread"
            ) from error
        return
    missing = sorted({core for cores in parse_cores(text) for core in cores} - set(available))
    if missing:
        raise ConfigError(
            f"machine.cores = {text!r}: core {missing[0]} cannot be used here; allowed: "
            f"{', '.join(map(str, available))}"
        )
