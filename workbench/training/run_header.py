"""Facts of a run that its journal and its tape begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from workbench.algorithms.digest import digest
from workbench.algorithms.fragments import Fragmentation
from workbench.algorithms.seeds import sub_seed
from workbench.config import RunConfig, to_toml
from workbench.datasets import Text
from workbench.training.environment import code_version, fingerprint
from workbench.training.flat import initial_weights
from workbench.training.program import TrainingProgram

SEED_NAMES = ("weights", "data", "virtual", "chaos")


def model_manifest(fragmentation: Fragmentation) -> dict[str, dict[str, Any]]:
    """Tensor to shape, dtype, kind and fragment."""
    return {
        spec.name: {"shape": list(spec.shape), "dtype": spec.dtype, "kind": spec.kind, "fragment": fragment}
        for spec, fragment in zip(fragmentation.tensors, fragmentation.assignment, strict=True)
    }


def run_header(
    config: RunConfig, text: Text, program: TrainingProgram, clock: str, faults: Mapping[str, Any]
) -> dict[str, Any]:
    """Facts of a run, for the head of its journal and the root of its tape.

    Parameters
    ----------
    config : RunConfig
    text : Text
    program : TrainingProgram
    clock : str
        ``virtual`` or ``real``.
    faults : mapping
        ``chaos`` and ``scenario``: the texts that the faults of the run come from (`workbench.protocol.plans`).
    """
    flat = b"".join(part.tobytes() for part in initial_weights(config))
    initial = digest(flat)
    toml = to_toml(config)
    return {
        "run_id": f"{digest((toml + faults['chaos'] + faults['scenario']).encode()):016x}-{initial & 0xFFFFFFFF:08x}",
        "clock": clock,
        "config": toml,
        "seeds": {name: sub_seed(config.seed, name) for name in SEED_NAMES},
        "code_version": code_version(),
        "fingerprint": fingerprint(),
        "manifest": model_manifest(program.fragmentation),
        "initial_digest": f"{initial:016x}",
        "data_manifest": [asdict(entry) | {"digest": f"{entry.digest:016x}"} for entry in text.manifest],
        "faults": dict(faults),
        "parent": None,
    }
