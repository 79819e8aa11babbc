"""The checks of ``workbench doctor``: each yields findings about one part of the machine."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy", "numba", "xarray", "zarr", "icechunk", "msgspec")
GIB = 2**30
MEMORY_MIN = 2 * GIB
DISK_MIN = 2 * GIB
WRITE_MIN_MB_S = 50.0
WRITE_BYTES = 32 * 2**20


class Finding(NamedTuple):
    """One line of the doctor's table.

    Attributes
    ----------
    name, value : str
        What was looked at and what is there.
    note : str
        What is amiss, empty if nothing.
    type_this : str
        The command that mends it, empty if there is none.
    broken : bool
        True if the workbench cannot work like this, False for a warning.
    group : str
        What it is shown together with, empty if it stands alone.
    """

    name: str
    value: str
    note: str = ""
    type_this: str = ""
    broken: bool = False
    group: str = ""


def run_all(folder: Path) -> list[Finding]:
    """Run every check; one that raises becomes a finding itself.

    Parameters
    ----------
    folder : Path
        Where runs would be written.
    """
    findings: list[Finding] = []
    for name, check in CHECKS.items():
        try:
            findings += check(folder)
        except Exception as error:  # a broken machine is what this verb is for
            text = str(error).splitlines()[0] if str(error) else "no message"
            findings.append(Finding(name, "failed", f"{type(error).__name__}: {text}", broken=True))
    return findings


def python(folder: Path) -> Iterator[Finding]:
    """Interpreter and its version."""
    fits = (3, 11) <= sys.version_info[:2] <= (3, 13)
    note = "" if fits else f"Python {platform.python_version()} is not one of 3.11, 3.12, 3.13"
    yield Finding("python", f"{platform.python_version()} ({sys.executable})", note, "" if fits else "make setup")


def packages(folder: Path) -> Iterator[Finding]:
    """Versions of the packages that a run's bits and its tape depend on."""
    for name in PACKAGES:
        try:
            yield Finding(name, importlib.metadata.version(name), group="packages")
        except importlib.metadata.PackageNotFoundError:
            yield Finding(name, "missing", "the package is not installed", "make setup", True, "packages")


def bytecode(folder: Path) -> Iterator[Finding]:
    """Whether jax is compiled: without it each start takes seconds longer."""
    spec = importlib.util.find_spec("jax")
    if spec is None or spec.origin is None:
        return
    if Path(importlib.util.cache_from_source(spec.origin)).exists():
        yield Finding("bytecode", "compiled")
    else:
        site = Path(spec.origin).parent.parent
        note = "the packages are not compiled, every start pays for it"
        yield Finding("bytecode", "missing", note, f"{sys.executable} -m compileall -qq -j 0 {site}")


def devices(folder: Path) -> Iterator[Finding]:
    """Devices that JAX sees."""
    import jax

    found = jax.devices()
    kinds = sorted({device.device_kind for device in found})
    yield Finding("devices", f"{len(found)} x {', '.join(kinds)} (platform {jax.default_backend()})")


def cores(folder: Path) -> Iterator[Finding]:
    """Cores of the machine and those that this process may use."""
    usable = visible_cores()
    note = "one core: learners take turns" if usable == 1 else ""
    yield Finding("cores", f"{usable} usable of {os.cpu_count()} ({platform.machine()})", note)


def visible_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory(folder: Path) -> Iterator[Finding]:
    """Memory, all and available."""
    import psutil

    seen = psutil.virtual_memory()
    note = "little memory is free" if seen.available < MEMORY_MIN else ""
    remedy = "workbench train --set learners=2" if note else ""
    yield Finding("memory", f"{seen.available / GIB:.1f} GiB free of {seen.total / GIB:.1f} GiB", note, remedy)


def disk(folder: Path) -> Iterator[Finding]:
    """Free space where runs would go."""
    free = shutil.disk_usage(existing(folder)).free
    note = "little space is left for tapes" if free < DISK_MIN else ""
    remedy = "workbench train --out FOLDER (on another disk)" if note else ""
    yield Finding("disk", f"{free / GIB:.1f} GiB free at {existing(folder)}", note, remedy)


def existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(path for path in (folder.resolve(), *folder.resolve().parents) if path.is_dir())


def tmpfs(folder: Path) -> Iterator[Finding]:
    """Memory file system, where blocks shared by processes of one machine lie."""
    place = Path("/dev/shm")
    if not place.is_dir():
        yield Finding("tmpfs", "none", "no /dev/shm here; files shared by processes would lie on disk")
        return
    usage = shutil.disk_usage(place)
    note = "little space is left on it" if usage.free < GIB else ""
    yield Finding("tmpfs", f"{usage.free / GIB:.1f} GiB free at {place}", note, f"ls -l {place}" if note else "")


def write_speed(folder: Path) -> Iterator[Finding]:
    """Speed of writing 32 MiB and having the disk confirm it, where runs would go."""
    block = os.urandom(WRITE_BYTES)
    with tempfile.TemporaryFile(dir=existing(folder)) as file:
        began = time.perf_counter()
        file.write(block)
        file.flush()
        os.fsync(file.fileno())
        speed = WRITE_BYTES / 1e6 / (time.perf_counter() - began)
    note = "a slow disk delays journal and tape" if speed < WRITE_MIN_MB_S else ""
    remedy = "workbench train --out FOLDER (on a faster disk)" if note else ""
    yield Finding("write speed", f"{speed:.0f} MB/s at {existing(folder)}", note, remedy)


def fingerprint(folder: Path) -> Iterator[Finding]:
    """What a run's bits depend on here, as the tape will hold it; the versions stand above."""
    from workbench.training.environment import fingerprint as entries

    for name, value in entries(device=False).items():
        if name not in (*PACKAGES, "device_kind"):
            yield Finding(name, value or "not set", group="bits depend on")


CHECKS: dict[str, Callable[[Path], Iterator[Finding]]] = {
    "python": python,
    "packages": packages,
    "bytecode": bytecode,
    "devices": devices,
    "cores": cores,
    "memory": memory,
    "disk": disk,
    "tmpfs": tmpfs,
    "write speed": write_speed,
    "fingerprint": fingerprint,
}
"""All checks by name, in the order in which they are shown."""
