"""Where a real run keeps what is neither journal nor tape, and how its processes find it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from workbench.algorithms.fragments import Fragmentation, TensorSpec
from workbench.config import ConfigError, RunConfig, from_toml

CONTROL_FILE = "control.json"
PLAN_FILE = "plan.json"
SLOTS_FILE = "slots"


class PlannedFault(msgspec.Struct, frozen=True):
    """A fault of a scenario: strikes ``at_ns`` after the start of rounds; ``learner`` -1 is the syncer."""

    kind: str
    at_ns: int
    learner: int = -1
    for_ns: int = 0


class Plan(msgspec.Struct, frozen=True):
    """What a supervisor is told beside the configuration.

    Attributes
    ----------
    faults : list of PlannedFault
    chaos, scenario : str
        The texts that they come from.
    """

    faults: list[PlannedFault] = []
    chaos: str = ""
    scenario: str = ""


class ControlAddress(msgspec.Struct, frozen=True):
    """How to reach the supervisor of a run: socket, token, and who it is."""

    socket: str
    token: str
    pid: int
    started: int
    runtime: str


def write_private(path: Path, content: bytes) -> None:
    """Write a file (0600), whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)
    draft.replace(path)


def read_plan(run: Path) -> Plan:
    """The plan of a run; an empty one if there is none.

    Raises
    ------
    ConfigError
        The file is no plan.
    """
    path = run / PLAN_FILE
    if not path.exists():
        return Plan()
    try:
        return msgspec.json.decode(path.read_bytes(), type=Plan)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is no plan of faults: {error}") from error


def read_config(run: Path) -> RunConfig:
    """The configuration of a run.

    Raises
    ------
    ConfigError
        It cannot be read.
    """
    path = run / "config.toml"
    try:
        return from_toml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the configuration {path}: {error}") from error


def initial_path(run: Path) -> Path:
    """File of the run's first weights: snapshot 0."""
    return run / "snapshots" / "0" / "weights.npz"


def save_initial(run: Path, weights: list[np.ndarray]) -> None:
    """Write the first weights, flat float32 (size,) per fragment."""
    path = initial_path(run)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(".weights.npz")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        np.savez(file, allow_pickle=False, **{f"fragment_{p}": flat for p, flat in enumerate(weights)})  # type: ignore[arg-type]
    draft.replace(path)


def load_initial(run: Path, sizes: tuple[int, ...]) -> list[np.ndarray]:
    """Read the first weights, one vector (size,) per fragment.

    Raises
    ------
    ConfigError
        The file is of another model.
    """
    with np.load(initial_path(run), allow_pickle=False) as stored:
        weights = [stored[f"fragment_{p}"] for p in range(len(sizes))] if len(stored.files) == len(sizes) else []
    if [w.shape for w in weights] != [(size,) for size in sizes]:
        raise ConfigError(f"{initial_path(run)} holds weights of another model; expected fragments of {list(sizes)}")
    return weights


def fragmentation_of_header(header: dict[str, Any], fragments: int) -> Fragmentation:
    """The fragmentation that a journal's header describes; loads no model code."""
    manifest = header["manifest"]
    names = sorted(manifest)
    specs = tuple(
        TensorSpec(name, tuple(manifest[name]["shape"]), manifest[name]["dtype"], manifest[name]["kind"])
        for name in names
    )
    return Fragmentation(specs, tuple(manifest[name]["fragment"] for name in names), fragments)
