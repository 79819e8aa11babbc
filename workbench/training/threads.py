"""How many threads the CPU device of this process has: decided once, at its first use."""

from __future__ import annotations

import os

from workbench.config import ConfigError

VARIABLE = "PJRT_NPROC"


def thread_variables(threads: int | None) -> dict[str, str]:
    """Environment of a process whose device shall have so many threads; empty where JAX decides."""
    return {} if threads is None else {VARIABLE: str(threads)}


def thread_variable() -> str:
    """What the environment of this process says, empty if nothing."""
    return os.environ.get(VARIABLE) or os.environ.get("NPROC", "")


def use_threads(threads: int | None) -> None:
    """Give the device of this process so many threads; None leaves things as they are.

    Raises
    ------
    ConfigError
        The device has been used before, with another number.
    """
    if threads is None or os.environ.get(VARIABLE) == str(threads):
        return
    if device_used():
        raise ConfigError(
            f"machine.threads = {threads} comes too late: this process has used its device, with {VARIABLE} "
            f"{os.environ.get(VARIABLE) or 'unset'}; allowed: a new process, or machine.threads = none"
        )
    os.environ.update(thread_variables(threads))


def device_used() -> bool:
    """Whether JAX has looked for its devices in this process, so that their threads are there."""
    from jax._src import xla_bridge  # the public interface has no question that does not make the device

    return xla_bridge.backends_are_initialized()
