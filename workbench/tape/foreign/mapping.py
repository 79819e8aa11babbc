"""Which fields of another trainer's log mean what: a small TOML file."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from workbench.config import ConfigError
from workbench.config.files import read_text

UNITS_NS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
"""Nanoseconds in the units of time."""
ISO = "iso"
FILE = "@file"
"""In the place of a field: the name of the file, without its ending."""

KEYS = """\
time          field with the time of a line
time_unit     s (default), ms, us, ns, or iso (2026-01-31T12:00:00.5Z)
replica       field with the name or number of the replica that wrote it;
              "@file": each file is one replica's, named as the file
step          field with the number of the inner step that the line reports; a
              number that does not rise: the replica was started again
tokens        field with the tokens of the step (optional)
loss          field with its loss (optional)
duration      field with how long it took (optional; without it no goodput)
duration_unit as time_unit, without iso
sync          field with the number of the committed sync that it reports;
              several lines may report the same sync
participants  field with the list of its replicas (optional: who reports it)
committed     field that must be true for a sync to count (optional)
[step_when]   field = value: only such lines report steps (optional)
[sync_when]   field = value: only such lines report syncs (optional)
A field inside a table is named with dots: metrics.loss"""
"""The keys of the file, for people."""


@dataclass(frozen=True)
class LogMap:
    """Fields of a log by what they mean; those that are optional are empty where the log lacks them.

    Attributes
    ----------
    time, replica, step, sync, participants, committed, tokens, loss, duration : str
        Paths of fields, with dots into tables.
    time_unit, duration_unit : str
    step_when, sync_when : dict of str to value
        What a line must hold to report a step, or a sync.
    """

    time: str
    replica: str
    step: str
    sync: str
    participants: str = ""
    committed: str = ""
    tokens: str = ""
    loss: str = ""
    duration: str = ""
    time_unit: str = "s"
    duration_unit: str = "s"
    step_when: Mapping[str, Any] = field(default_factory=dict)
    sync_when: Mapping[str, Any] = field(default_factory=dict)


_TABLES = ("step_when", "sync_when")
_NEEDED = ("time", "replica", "step", "sync")
_NAMES = tuple(each.name for each in fields(LogMap))


def load_map(path: str | Path) -> LogMap:
    """Read a map from its file.

    Raises
    ------
    ConfigError
        It cannot be read, is no TOML, lacks a key, or has one that is unknown.
    """
    return map_of(read_text(path, "the map of the log"), str(path))


def map_of(text: str, where: str = "the map") -> LogMap:
    r"""Read a map from TOML text; ``where`` names it in errors.

    Examples
    --------
    >>> map_of('time = "t"\nreplica = "id"\nstep = "step"\nsync = "outer"').time_unit
    's'
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not TOML: {error}") from error
    for key, value in found.items():
        _check(key, value, where)
    missing = [key for key in _NEEDED if key not in found]
    if missing:
        raise ConfigError(f'{where} lacks {", ".join(missing)}; type for example {missing[0]} = "{missing[0]}"')
    return LogMap(**found)


def _check(key: str, value: Any, where: str) -> None:
    if key not in _NAMES:
        near = difflib.get_close_matches(key, _NAMES, 1)
        raise ConfigError(
            f"{where}: unknown key {key!r}{f'; nearest: {near[0]}' if near else ''}; allowed: {', '.join(_NAMES)}"
        )
    if key in _TABLES:
        if not isinstance(value, dict) or not all(isinstance(each, str | int | bool) for each in value.values()):
            raise ConfigError(f"{where}: {key} = {value!r}; expected a table of field = text, number, true or false")
    elif not isinstance(value, str) or not value:
        raise ConfigError(f"{where}: {key} = {value!r}; expected the name of a field as text")
    if key.endswith("_unit"):
        units = (*UNITS_NS, ISO) if key == "time_unit" else tuple(UNITS_NS)
        if value not in units:
            raise ConfigError(f"{where}: {key} = {value!r}; allowed: {', '.join(units)}")
