"""Faults from tables of keys: those of a scenario file, and those that are asked for while a run goes on."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from workbench.config import ConfigError, RunConfig
from workbench.config.files import read_text
from workbench.config.keys import shown
from workbench.protocol.faults import (
    COUNTED_KINDS,
    FAULT_KINDS,
    SYNCER_KINDS,
    Fault,
    FaultPlan,
)
from workbench.protocol.settings import SECOND


class _Span(NamedTuple):
    """What a number may be, and what it is if it is not given."""

    default: float
    least: float
    most: float = 1e9


_TRIGGERS = ("at_s", "at_round", "at_merge")
_ALWAYS = ("kind", "learner", *_TRIGGERS, "every_s", "times")
_NUMBERS = {
    "for_s": _Span(3.0, 0.0),
    "down_s": _Span(3.0, 0.0),
    "start_s": _Span(3.0, 0.0),
    "factor": _Span(3.0, 1.0),
    "delay_s": _Span(0.2, 0.0),
    "jitter_s": _Span(0.0, 0.0),
    "share": _Span(0.3, 0.0, 1.0),
    "bytes_per_s": _Span(1e6, 1.0, 1e15),
}
_SCALE = _Span(10.0, -1e9)
_OWN = {
    "slow": ("for_s", "factor"),
    "late": ("start_s",),
    "delay": ("for_s", "delay_s", "jitter_s", "seed"),
    "loss": ("for_s", "share", "seed"),
    "bandwidth": ("for_s", "bytes_per_s"),
    "scale": ("count", "factor", "persistent"),
    "random": ("count", "persistent", "seed"),
    "corrupt": ("count", "seed"),
    "shape": ("count",),
    **dict.fromkeys(("add", "remove"), ()),
    **dict.fromkeys(("kill", "exit", "kill_syncer"), ("for_s", "down_s")),
    **dict.fromkeys(("nan", "inf", "flip"), ("count", "persistent")),
}


def keys_of(kind: str) -> tuple[str, ...]:
    """Keys that a kind of fault has of its own."""
    return _OWN.get(kind, ("count",) if kind in COUNTED_KINDS else ("for_s",))


def load_faults(path: str | Path, config: RunConfig) -> FaultPlan:
    """Read a scenario: ``[[fault]]`` tables with a kind, a target, when it strikes, and the kind's own keys.

    Raises
    ------
    ConfigError
        No such file, not TOML, or a fault with an unknown kind, key, learner or time.
    """
    text = read_text(path, "fault scenario")
    try:
        tables = tomllib.loads(text).get("fault", [])
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"fault scenario {str(path)!r} is not TOML: {error}") from error
    if not isinstance(tables, list) or not tables:
        raise ConfigError(f"fault scenario {str(path)!r} holds no [[fault]] table")
    return FaultPlan(faults_of_tables(tables, str(path), config), scenario=text)


def faults_of_tables(tables: list[Any], where: str, config: RunConfig) -> tuple[Fault, ...]:
    """Faults of the tables of a scenario, in order of time; ``where`` names it in errors (`ConfigError`)."""
    learners = config.learners + sum(_added(table) for table in tables)
    faults = (fault_of(table, f"{where}, fault {i}", learners) for i, table in enumerate(tables, 1))
    return tuple(sorted(faults, key=lambda f: f.at_ns))


def _added(table: Any) -> int:
    """How many learners a table adds: faults that come later may name them."""
    times = table.get("times", 1) if isinstance(table, dict) and table.get("kind") == "add" else 0
    return times if isinstance(times, int) else 0


def fault_of(table: Any, where: str, learners: int, *, now: bool = False) -> Fault:
    """One fault from its table.

    Parameters
    ----------
    table : dict
        ``kind``, ``learner``, one of ``at_s``, ``at_round`` and ``at_merge``, and the kind's own keys.
    where : str
        What the table is, for errors.
    learners : int
        M.
    now : bool
        It strikes at once: the table says neither when nor how often.

    Raises
    ------
    ConfigError
        Anything in it that cannot work.
    """
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: {shown(table)} is not a table of keys")
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in FAULT_KINDS:
        raise ConfigError(f"{where}: kind = {shown(kind)} is unknown; allowed: {', '.join(FAULT_KINDS)}")
    always = ("kind", "learner") if now or kind == "late" else _ALWAYS
    allowed = (*always, *keys_of(kind))
    unknown = [key for key in table if key not in allowed]
    if unknown:
        raise ConfigError(
            f"{where}: unknown key {shown(unknown[0])} of a {kind}; allowed: {', '.join(sorted(allowed))}"
        )
    learner = _learner(table, where, kind, learners)
    when = {} if now or kind == "late" else _when(table, where)
    if kind == "add" and when.get("times") == 0:
        raise ConfigError(f"{where}: an add with every_s needs times: how many learners are added in all")
    return Fault(**{"kind": kind, "at_ns": 0, "learner": learner, **when, **_own(table, where, kind)})


def _learner(table: dict[str, Any], where: str, kind: str, learners: int) -> int:
    learner = table.get("learner", -1)
    if kind in (*SYNCER_KINDS, "add"):
        return -1
    if isinstance(learner, bool) or not isinstance(learner, int) or not 0 <= learner < learners:
        raise ConfigError(f"{where}: learner = {shown(learner)}; allowed: 0 to {learners - 1}")
    return learner


def _when(table: dict[str, Any], where: str) -> dict[str, int]:
    """When it strikes, and how often."""
    given = [key for key in _TRIGGERS if key in table]
    if not given:
        raise ConfigError(f"{where}: at_s (seconds from the start) is missing; at_round or at_merge would do as well")
    if len(given) > 1:
        raise ConfigError(f"{where}: {' and '.join(given)} both say when it strikes; give one of them")
    found: dict[str, int] = {}
    if "at_s" in table:
        found["at_ns"] = int(_number(table, "at_s", where, _Span(0.0, 0.0)) * SECOND)
    for key in ("at_round", "at_merge"):
        if key in table:
            found[key] = _whole(table, key, where, 0, 0)
    if "every_s" in table:
        found["every_ns"] = int(_number(table, "every_s", where, _Span(0.0, 0.001)) * SECOND)
        found["times"] = _whole(table, "times", where, 1, 1) if "times" in table else 0
    elif "times" in table:
        raise ConfigError(
            f"{where}: times = {shown(table['times'])} without every_s; give the seconds between two of them"
        )
    return found


def _own(table: dict[str, Any], where: str, kind: str) -> dict[str, Any]:
    """What the kind has of its own, in the words of `Fault`."""
    keys = keys_of(kind)
    if "down_s" in table and "for_s" in table:
        raise ConfigError(f"{where}: for_s and down_s name the same length; give one of them")
    found: dict[str, Any] = {}
    length = next((key for key in ("down_s", "start_s", "for_s") if key in table and key in keys), "for_s")
    if kind == "late" or "for_s" in keys:
        found["for_ns"] = int(_number(table, length, where, _NUMBERS[length]) * SECOND)
    if "factor" in keys:
        found["factor"] = _number(table, "factor", where, _SCALE if kind == "scale" else _NUMBERS["factor"])
    for key, name in (("delay_s", "delay_ns"), ("jitter_s", "jitter_ns")):
        if key in keys:
            found[name] = int(_number(table, key, where, _NUMBERS[key]) * SECOND)
    for key in ("share", "bytes_per_s"):
        if key in keys:
            found[key] = _number(table, key, where, _NUMBERS[key])
    if "count" in keys:
        found["count"] = _whole(table, "count", where, 1, 1)
    if "seed" in table:
        found["seed"] = _whole(table, "seed", where, 0, 0, 2**62)
    if "persistent" in table:
        if not isinstance(table["persistent"], bool):
            raise ConfigError(f"{where}: persistent = {shown(table['persistent'])}; allowed: true or false")
        found["persistent"] = table["persistent"]
    return found


def _number(table: dict[str, Any], key: str, where: str, span: _Span) -> float:
    value = table.get(key, span.default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not span.least <= value <= span.most:
        raise ConfigError(f"{where}: {key} = {shown(value)}; allowed: a number from {span.least:g} to {span.most:g}")
    return float(value)


def _whole(table: dict[str, Any], key: str, where: str, default: int, least: int, most: int = 10**9) -> int:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigError(f"{where}: {key} = {shown(value)}; allowed: a whole number from {least} to {most}")
    return value
