"""Faults to inject: from a scenario file, drawn at random, or made by the explorer."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.algorithms.seeds import sub_seed
from workbench.config import ConfigError, RunConfig
from workbench.config.files import read_text
from workbench.simulate import draws
from workbench.simulate.durations import SECOND

FAULT_KINDS = {
    "kill": "SIGKILL of a learner; a new process starts after `for_s` (never, if 0)",
    "stall": "SIGSTOP of a learner for `for_s`",
    "slow": "steps of a learner take `factor` times as long for `for_s`",
    "cut": "both directions of a learner's link lose everything for `for_s`",
    "cut_up": "only messages to the syncer are lost for `for_s`",
    "cut_down": "only messages to the learner are lost for `for_s`",
    "lose_up": "the next `count` messages to the syncer are lost",
    "lose_down": "the next `count` messages to the learner are lost",
    "delay": "messages of a learner take `factor` times as long for `for_s`",
    "nan": "the next `count` contributions of a learner hold a NaN",
    "kill_syncer": "SIGKILL of the syncer; it starts again after `for_s`",
    "stall_syncer": "SIGSTOP of the syncer for `for_s`",
}
"""Kinds of fault and what they do."""

SYNCER_KINDS = ("kill_syncer", "stall_syncer")


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes
    ----------
    kind : str
        One of `FAULT_KINDS`.
    at_ns, for_ns : int
        When it begins [ns of virtual time] and how long it lasts.
    learner : int
        Its target; -1 for the syncer.
    factor : float
        Of ``slow`` and ``delay``.
    count : int
        Of ``lose_up``, ``lose_down`` and ``nan``.
    round_state : int
        With a value of `RoundState`: strike at the first event from ``at_ns`` on at which some round is
        in that state; -1 strikes at ``at_ns``.
    """

    kind: str
    at_ns: int
    learner: int = -1
    for_ns: int = 0
    factor: float = 1.0
    count: int = 1
    round_state: int = -1


@dataclass(frozen=True)
class FaultPlan:
    """Faults of a run, and the Poisson storm that they were drawn from, if any."""

    faults: tuple[Fault, ...] = ()
    chaos: str = ""
    scenario: str = ""
    notes: tuple[str, ...] = field(default=())

    def __add__(self, other: FaultPlan) -> FaultPlan:
        return FaultPlan(
            tuple(sorted(self.faults + other.faults, key=lambda f: f.at_ns)),
            self.chaos or other.chaos,
            self.scenario or other.scenario,
            self.notes + other.notes,
        )


NO_FAULTS = FaultPlan()
"""A plan without faults."""

_SCENARIO_KEYS = {"kind", "at_s", "learner", "for_s", "down_s", "factor", "count"}


def load_faults(path: str | Path, config: RunConfig) -> FaultPlan:
    """Read a scenario: ``[[fault]]`` tables with kind, at_s, learner, for_s (or down_s), factor, count.

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
    faults = tuple(_fault_of(table, f"{path}, fault {i}", config) for i, table in enumerate(tables, 1))
    return FaultPlan(tuple(sorted(faults, key=lambda f: f.at_ns)), scenario=text)


def _number(table: dict[str, Any], key: str, where: str, default: float, least: float) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 1e9:
        raise ConfigError(f"{where}: {key} = {value!r}; allowed: a number from {least:g}")
    return float(value)


def _whole(table: dict[str, Any], key: str, where: str, default: int, least: int) -> int:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 10**9:
        raise ConfigError(f"{where}: {key} = {value!r}; allowed: a whole number from {least}")
    return value


def _fault_of(table: dict[str, Any], where: str, config: RunConfig) -> Fault:
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: {table!r} is not a table of keys")
    unknown = sorted(set(table) - _SCENARIO_KEYS)
    if unknown:
        raise ConfigError(f"{where}: unknown key {unknown[0]!r}; allowed: {', '.join(sorted(_SCENARIO_KEYS))}")
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in FAULT_KINDS:
        raise ConfigError(f"{where}: kind = {kind!r} is unknown; allowed: {', '.join(FAULT_KINDS)}")
    if "at_s" not in table:
        raise ConfigError(f"{where}: at_s (seconds from the start) is missing")
    learner = table.get("learner", -1)
    if kind in SYNCER_KINDS:
        learner = -1
    elif isinstance(learner, bool) or not isinstance(learner, int) or not 0 <= learner < config.learners:
        raise ConfigError(f"{where}: learner = {learner!r}; allowed: 0 to {config.learners - 1}")
    if "down_s" in table and "for_s" in table:
        raise ConfigError(f"{where}: for_s and down_s name the same length; give one of them")
    length = "down_s" if "down_s" in table else "for_s"
    return Fault(
        kind=kind,
        at_ns=int(_number(table, "at_s", where, 0.0, 0.0) * SECOND),
        learner=learner,
        for_ns=int(_number(table, length, where, 3.0, 0.0) * SECOND),
        factor=_number(table, "factor", where, 3.0, 0.01),
        count=_whole(table, "count", where, 1, 1),
    )


CHAOS_FAULTS_MAX = 100_000
_CHAOS_DEFAULTS: dict[str, float] = {"mtbi": 40.0, "down": 3.0, "stall": 3.0, "cut": 3.0, "factor": 3.0, "seed": -1.0}
CHAOS_KINDS = ("kill", "stall", "slow", "cut", "cut_up", "cut_down", "delay", "nan")


def _parse_spec(spec: str) -> tuple[dict[str, float], list[str]]:
    """Items without ``=`` continue the list before them: ``kinds=kill,stall`` is one key."""
    numbers = dict(_CHAOS_DEFAULTS)
    kinds: list[str] = []
    given: set[str] = set()
    key = ""
    if not spec.strip(" ,"):
        raise ConfigError("chaos: nothing is asked for; allowed: as in mtbi=40s,kinds=kill,stall,cut")
    for item in (part.strip() for part in spec.split(",") if part.strip()):
        name, sep, value = item.partition("=")
        key, value = (name.strip(), value.strip()) if sep else (key, item)
        if sep and key in given:
            raise ConfigError(f"chaos: {key} is given twice; allowed: each key once")
        given.add(key)
        if key == "kinds":
            if value not in CHAOS_KINDS:
                raise ConfigError(f"chaos: kind {value!r} is unknown; allowed: {', '.join(CHAOS_KINDS)}")
            kinds.append(value)
        elif key in numbers:
            try:
                numbers[key] = float(value.removesuffix("s"))
            except ValueError as error:
                raise ConfigError(f"chaos: {key} = {value!r} is not a number (of seconds, as in mtbi=40s)") from error
        else:
            if item in numbers:
                raise ConfigError(f"chaos: {item} has no value; allowed: as in {item}=40s")
            raise ConfigError(f"chaos: unknown key {key or item!r}; allowed: kinds, {', '.join(numbers)}")
    return numbers, kinds or ["kill", "stall", "cut"]


def _check_storm(numbers: dict[str, float], learner_s: float) -> None:
    """Refuse numbers that are not possible; ``learner_s`` is the time of all learners together [s]."""
    for key in ("mtbi", "factor"):
        if not 0.0 < numbers[key] <= 1e9:
            raise ConfigError(f"chaos: {key} = {numbers[key]:g}; allowed: above 0, up to 1e9")
    for key in ("down", "stall", "cut"):
        if not 0.0 <= numbers[key] <= 1e9:
            raise ConfigError(f"chaos: {key} = {numbers[key]:g} s; allowed: 0 to 1e9")
    if not numbers["seed"].is_integer():
        raise ConfigError(f"chaos: seed = {numbers['seed']:g}; allowed: a whole number")
    if learner_s / numbers["mtbi"] > CHAOS_FAULTS_MAX:
        raise ConfigError(
            f"chaos: mtbi = {numbers['mtbi']:g} s gives about {learner_s / numbers['mtbi']:.0f} faults; "
            f"allowed: up to {CHAOS_FAULTS_MAX} (try mtbi={learner_s / CHAOS_FAULTS_MAX:g}s or more)"
        )


def parse_chaos(spec: str, config: RunConfig, horizon_s: float) -> FaultPlan:
    """Draw a storm: each learner is interrupted by a Poisson process with mean time ``mtbi``.

    Parameters
    ----------
    spec : str
        As ``mtbi=40s,kinds=kill,stall,cut`` with optional ``down``, ``stall``, ``cut`` [s], ``factor``, ``seed``.
    config : RunConfig
        Learners and the seed that the draw hangs off (unless the spec names one).
    horizon_s : float
        Faults are drawn up to this time [s].

    Raises
    ------
    ConfigError
        An unknown key or kind, a number that is not possible, or more faults than a run could take.
    """
    numbers, kinds = _parse_spec(spec)
    _check_storm(numbers, config.learners * horizon_s)
    seed = sub_seed(config.seed if numbers["seed"] < 0 else int(numbers["seed"]), "chaos")
    faults = []
    for learner in range(config.learners):
        at, count = 0.0, 0
        while True:
            count += 1
            at += draws.exponential(numbers["mtbi"], seed, learner, count, 0)
            if at >= horizon_s:
                break
            kind = kinds[int(draws.uniform(seed, learner, count, 1) * len(kinds))]
            length = numbers["down"] if kind == "kill" else numbers["stall"] if kind == "stall" else numbers["cut"]
            faults.append(Fault(kind, int(at * SECOND), learner, int(length * SECOND), numbers["factor"]))
    fleet = numbers["mtbi"] / config.learners
    note = f"chaos: MTBI {numbers['mtbi']:g} s per learner, fleet MTBF {fleet:g} s, {len(faults)} faults drawn"
    return FaultPlan(tuple(sorted(faults, key=lambda f: (f.at_ns, f.learner))), chaos=spec, notes=(note,))
