"""Storms: faults drawn at random, by a Poisson process of each learner (DESIGN section 5)."""

from __future__ import annotations

from dataclasses import replace

from workbench.algorithms import draws
from workbench.algorithms.seeds import sub_seed
from workbench.config import ConfigError, RunConfig
from workbench.protocol.faults import FAULT_KINDS, ROSTER_KINDS, SYNCER_KINDS, Fault, FaultPlan
from workbench.protocol.scenario import fault_of, keys_of
from workbench.protocol.settings import SECOND

CHAOS_FAULTS_MAX = 100_000
REAL_FAULTS, REAL_S = 2_000, 86_400.0
"""A storm over a run whose length nobody knows: so many faults are drawn, for a day [s] at most."""
REAL_MTBF_MIN_S = 0.05
"""A faster storm strikes nobody: no process is there for so short a time."""
_CHAOS_DEFAULTS: dict[str, float] = {"mtbi": 40.0, "down": 3.0, "stall": 3.0, "cut": 3.0, "factor": 3.0, "seed": -1.0}
CHAOS_KINDS = tuple(kind for kind in FAULT_KINDS if kind not in (*SYNCER_KINDS, *ROSTER_KINDS, "late"))


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


def parse_chaos(spec: str, config: RunConfig, horizon_s: float | None) -> FaultPlan:
    """Draw a storm: each learner is interrupted by a Poisson process with mean time ``mtbi``.

    Parameters
    ----------
    spec : str
        As ``mtbi=40s,kinds=kill,stall,cut`` with optional ``down`` (kill, exit), ``stall`` and ``cut`` (all others
        that last) [s], ``factor`` (slow, scale), ``seed``; what else a kind has is as in a scenario without it.
    config : RunConfig
        Learners and the seed that the draw hangs off (unless the spec names one).
    horizon_s : float or None
        Faults are drawn up to this time [s]; None, where it is not known how long the run lasts: for a day, or fewer
        hours where `REAL_FAULTS` are due before.

    Raises
    ------
    ConfigError
        An unknown key or kind, a number that is not possible, or more faults than a run could take.
    """
    numbers, kinds = _parse_spec(spec)
    _check_storm(numbers, config.learners * (horizon_s or 0.0))
    if horizon_s is None:
        least = config.learners * REAL_MTBF_MIN_S
        if numbers["mtbi"] < least:
            raise ConfigError(
                f"chaos: mtbi = {numbers['mtbi']:g} s strikes {config.learners} learners every "
                f"{numbers['mtbi'] / config.learners:g} s; allowed with real processes: from {least:g} s"
            )
        horizon_s = min(REAL_S, REAL_FAULTS * numbers["mtbi"] / config.learners)
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
            faults.append(replace(_typical(kind, learner, numbers), at_ns=int(at * SECOND)))
    fleet = numbers["mtbi"] / config.learners
    drawn = f"{len(faults)} faults drawn for {horizon_s:.0f} s"
    note = f"chaos: MTBI {numbers['mtbi']:g} s per learner, fleet MTBF {fleet:g} s, {drawn}"
    return FaultPlan(tuple(sorted(faults, key=lambda f: (f.at_ns, f.learner))), chaos=spec, notes=(note,))


def _typical(kind: str, learner: int, numbers: dict[str, float]) -> Fault:
    """A fault of a kind as a storm brings it."""
    keys = keys_of(kind)
    table: dict[str, object] = {"kind": kind, "learner": learner}
    if "for_s" in keys:
        table["for_s"] = numbers["down" if "down_s" in keys else "stall" if kind == "stall" else "cut"]
    if "factor" in keys:
        table["factor"] = numbers["factor"]
    return fault_of(table, "chaos", learner + 1, now=True)
