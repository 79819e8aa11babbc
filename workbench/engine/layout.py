"""Where a real run keeps what is neither journal nor tape, and how its processes find it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from workbench.config import ConfigError, RunConfig, from_toml
from workbench.protocol.faults import Fault

CONTROL_FILE = "control.json"
PLAN_FILE = "plan.json"
OUTCOME_FILE = "outcome.json"


class Plan(msgspec.Struct, frozen=True):
    """What a supervisor is told beside the configuration.

    Attributes
    ----------
    faults : list of Fault
        They strike so long after the start of rounds as they say.
    facts : dict
        What the header of the tape says of them (`workbench.protocol.plans.facts_of`).
    """

    faults: list[Fault] = []
    facts: dict[str, Any] = msgspec.field(default_factory=lambda: {"chaos": "", "scenario": ""})


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


def read_outcome(run: Path) -> tuple[int, str] | None:
    """Exit code and last line of a run that is over, as its supervisor left them; None if it left nothing."""
    try:
        found = msgspec.json.decode((run / OUTCOME_FILE).read_bytes())
        return int(found["code"]), str(found["line"])
    except (OSError, msgspec.DecodeError, KeyError, TypeError, ValueError):
        return None


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
