"""The plan of a run's faults: how its tape tells it, and what is left of it when a run goes on.

Times of a plan are those of the run's own clock, which stands still while nothing runs: what had not struck is yet to
come.  What came due between the last record and the moment at which the run goes on struck nobody; it is recorded as
without effect, like any fault whose target is gone (DESIGN section 5), and marked as skipped.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, fields, replace
from typing import Any, NamedTuple

import msgspec

from workbench.config import ConfigError, RunConfig
from workbench.protocol.acting import seeded
from workbench.protocol.chaos import parse_chaos
from workbench.protocol.faults import LASTING_KINDS, Fault, FaultPlan, kind_and_target, struck_fault
from workbench.protocol.records import Kind, Record
from workbench.protocol.scenario import faults_of_tables

REAL = "real"
SAID = 4
"""Skipped faults that are named."""
_DEFAULTS = {each.name: each.default for each in fields(Fault) if each.default is not MISSING}


class InHand(NamedTuple):
    """A fault that had begun when the run was lost, and was not over; ``number`` is its own in the run."""

    number: int
    fault: Fault
    began_ns: int


class Rest(NamedTuple):
    """What is left of a plan.

    Attributes
    ----------
    struck : int
        Number of the last fault of the run.
    to_come : list of Fault
        Faults that have not struck, or not for the last time.
    acting : list of InHand
        Faults that last, and late starts that are still waited for.
    began_ns : int
        When rounds began [ns of the run's clock], from which real processes count; -1: they had not.
    """

    struck: int
    to_come: list[Fault]
    acting: list[InHand]
    began_ns: int


def horizon_s(config: RunConfig) -> float:
    """How long a run is expected to last [s of virtual time]: P merges in each H steps."""
    return config.rounds * config.period / config.fragments * config.virtual.step_s


def numbered(plan: FaultPlan) -> FaultPlan:
    """The same plan, each fault with its number in it."""
    return replace(plan, faults=tuple(replace(fault, planned=i) for i, fault in enumerate(plan.faults, 1)))


def facts_of(plan: FaultPlan, config: RunConfig, clock: str) -> dict[str, Any]:
    """What the header of a tape says of a plan: the texts it comes from; where they do not give it, the faults."""
    facts: dict[str, Any] = {"chaos": plan.chaos, "scenario": plan.scenario}
    bare = [replace(fault, planned=0) for fault in plan.faults]
    if bare != list(_from_texts(facts, config, clock).faults):
        facts["faults"] = [_short(fault) for fault in bare]
    return facts


def _short(fault: Fault) -> dict[str, Any]:
    return {key: value for key, value in asdict(fault).items() if value != _DEFAULTS.get(key, MISSING)}


def plan_of(facts: Mapping[str, Any], config: RunConfig, clock: str) -> FaultPlan:
    """The plan that a header tells.

    Raises
    ------
    ConfigError
        It tells none that this release understands.
    """
    try:
        if "faults" not in facts:
            return numbered(_from_texts(facts, config, clock))
        listed = msgspec.convert(facts["faults"], list[Fault])
        return numbered(FaultPlan(tuple(listed), str(facts.get("chaos", "")), str(facts.get("scenario", ""))))
    except (msgspec.ValidationError, tomllib.TOMLDecodeError, ConfigError) as error:
        raise ConfigError(
            f"the plan of faults in the header cannot be read: {error}; --no-faults goes on without it"
        ) from error


def _from_texts(facts: Mapping[str, Any], config: RunConfig, clock: str) -> FaultPlan:
    scenario, chaos = str(facts.get("scenario", "")), str(facts.get("chaos", ""))
    plan = FaultPlan()
    if scenario:
        tables = tomllib.loads(scenario).get("fault", [])
        if not isinstance(tables, list):
            raise ConfigError("scenario: fault is no list of tables")
        plan += FaultPlan(faults_of_tables(tables, "scenario", config), scenario=scenario)
    if chaos:
        plan += parse_chaos(chaos, config, None if clock == REAL else horizon_s(config))
    return plan


def rest_of(plan: FaultPlan, records: Iterable[Record], config: RunConfig, clock: str) -> Rest:
    """What a journal leaves of a plan: what struck is on it."""
    injected: list[Record] = []
    over: set[int] = set()
    started: set[int] = set()
    began_ns = -1
    for record in records:
        if record.kind == Kind.FAULT_INJECTED:
            injected.append(record)
        elif record.kind == Kind.FAULT_ENDED:
            over.add(record.detail["fault"])
        elif record.kind == Kind.PROCESS_STARTED:
            started.add(record.peer)
        elif record.kind == Kind.ROUNDS_BEGAN and began_ns < 0:
            began_ns = record.time_ns
    zero_ns = max(began_ns, 0) if clock == REAL else 0
    struck: dict[int, list[int]] = {}
    for r in injected:
        struck.setdefault(r.detail.get("planned", 0), []).append(r.time_ns - zero_ns)
    left = [_left(fault, struck.get(fault.planned, [])) for fault in plan.faults]
    last = [r for r in injected if r.reason in LASTING_KINDS and r.detail["fault"] not in over]
    last += [r for r in injected if r.reason == "late" and r.peer not in started]
    acting = [_in_hand(r, plan, config) for r in last if r.detail.get("effect")]
    to_come = [fault for fault in left if fault is not None]
    return Rest(max((r.detail["fault"] for r in injected), default=0), to_come, acting, began_ns)


def _left(fault: Fault, struck_ns: list[int]) -> Fault | None:
    """What a planned fault has left to do after it struck at these times, None if nothing."""
    if not struck_ns:
        return fault
    if not fault.every_ns or len(struck_ns) == fault.times:
        return None
    times = fault.times - len(struck_ns) if fault.times else 0
    return replace(fault, at_ns=struck_ns[-1] + fault.every_ns, at_round=-1, at_merge=-1, times=times)


def _in_hand(record: Record, plan: FaultPlan, config: RunConfig) -> InHand:
    number, planned = record.detail["fault"], record.detail.get("planned", 0)
    fault = plan.faults[planned - 1] if 0 < planned <= len(plan.faults) else struck_fault(record)
    return InHand(number, replace(fault, seed=seeded(fault, number, config.seed)), record.time_ns)


def without(rest: Rest) -> Rest:
    """The same run without its plan: nothing is to come, and the time of what lasted is over."""
    return rest._replace(
        to_come=[], acting=[hand._replace(fault=replace(hand.fault, for_ns=1)) for hand in rest.acting]
    )


def has_passed(fault: Fault, now_ns: int, merges: int, round_: int) -> bool:
    """Whether a fault came due while nothing ran.

    Parameters
    ----------
    fault : Fault
    now_ns : int
        Time as the plan counts it.
    merges, round_ : int
        Done; the last that was opened.
    """
    if fault.kind == "late":
        return False
    if fault.at_round >= 0:
        return round_ >= fault.at_round
    return merges >= fault.at_merge if fault.at_merge >= 0 else fault.at_ns <= now_ns


def planned_words(fault: Fault) -> str:
    """A fault of a plan as people call it."""
    when = f"{fault.at_ns / 1e9:.3g} s"
    if fault.is_tied:
        when = f"round {fault.at_round}" if fault.at_round >= 0 else f"merge {fault.at_merge}"
    return f"{kind_and_target(fault)} at {when}"


def rest_line(rest: Rest) -> str:
    """One line for whoever resumes a run: what of its plan is yet to come; empty for nothing."""
    if not rest.to_come and not rest.acting:
        return ""
    acting = f", {len(rest.acting)} still acting" if rest.acting else ""
    return f"planned faults go on: {len(rest.to_come)} to come{acting} (--no-faults leaves them out)"


def skipped_line(skipped: list[str]) -> str:
    """One line about faults that came due while nothing ran; empty for none."""
    if not skipped:
        return ""
    more = f" and {len(skipped) - SAID} more" if len(skipped) > SAID else ""
    return f"skipped, since nothing ran when they were due: {', '.join(skipped[:SAID])}{more}"
