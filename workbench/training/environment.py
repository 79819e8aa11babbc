"""What the bits of a run depend on besides its inputs, and the environment that a learner runs best in."""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import xxhash

MALLOC_ADVICE = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
    "MALLOC_TOP_PAD_": "67108864",
}
"""glibc settings under which a step's temporaries are kept instead of being given back and faulted in again.

They act only when they are set before the process, and before a forkserver, starts.
"""

CODE_LAYERS = ("algorithms", "models", "datasets", "training")
"""Layers whose source decides the bits of weights."""


def fingerprint(*, device: bool = True) -> dict[str, str]:
    """Everything that two machines must share for bit-identical weights (DESIGN section 2).

    Parameters
    ----------
    device : bool
        Ask JAX for its device.  False in processes that must not touch one; ``device_kind`` is then empty.

    Returns
    -------
    dict of str
        jaxlib, numpy, numba: versions.  device_kind.  machine, cpu_features: architecture, xxh3-64 of the CPU's
        sorted flags.  visible_cores.  nproc, xla_flags, openblas_coretype: environment variables, empty if unset.
        flush_to_zero: whether numpy flushes denormals here.  code: version and xxh3-64 of the source.
    """
    return {
        "jaxlib": _version("jaxlib"),
        "numpy": _version("numpy"),
        "numba": _version("numba"),
        "device_kind": _device_kind() if device else "",
        "machine": platform.machine(),
        "cpu_features": _cpu_features(),
        "visible_cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "nproc": os.environ.get("PJRT_NPROC") or os.environ.get("NPROC", ""),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "openblas_coretype": os.environ.get("OPENBLAS_CORETYPE", ""),
        "flush_to_zero": str(_flushes_to_zero()).lower(),
        "code": code_version(),
    }


def malloc_advice() -> dict[str, str]:
    """Variables of `MALLOC_ADVICE` that are not set in this process's environment."""
    return {name: value for name, value in MALLOC_ADVICE.items() if name not in os.environ}


@lru_cache(maxsize=1)
def code_version() -> str:
    """Version of the package and xxh3-64 of the source that decides the bits of weights."""
    root = Path(__file__).parents[1]
    state = xxhash.xxh3_64()
    for layer in CODE_LAYERS:
        for path in sorted((root / layer).rglob("*.py")):
            state.update(path.relative_to(root).as_posix().encode())
            state.update(path.read_bytes())
    return f"{_version('workbench')}+{state.hexdigest()}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _device_kind() -> str:
    import jax

    return jax.devices()[0].device_kind


def _cpu_features() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return xxhash.xxh3_64_hexdigest(platform.processor().encode())
    for line in text.splitlines():
        if line.lower().startswith(("flags", "features")):
            return xxhash.xxh3_64_hexdigest(" ".join(sorted(line.partition(":")[2].split())).encode())
    return ""


def _flushes_to_zero() -> bool:
    denormal = np.array([1e-40], dtype=np.float32)
    return bool((denormal * np.float32(0.5))[0] == 0)
