"""Faults to inject, in one vocabulary for real processes and for virtual time (DESIGN section 5).

They stand outside the protocol: the machines never read this.  A supervisor lets them act, and records each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from workbench.protocol.records import SYNCER, Record, label_of, learner_of, process_of

FAULT_KINDS = {
    "kill": "SIGKILL of a learner; a new process starts after `down_s` (never, if 0)",
    "stall": "SIGSTOP of a learner for `for_s`",
    "slow": "steps of a learner take `factor` times as long for `for_s` (until healed, if 0)",
    "exit": "a learner ends itself with exit code 1; a new process starts after `down_s` (never, if 0)",
    "late": "a learner's first process starts only after `start_s`",
    "cut": "both directions of a learner's link lose everything for `for_s` (until healed, if 0)",
    "cut_up": "only messages to the syncer are lost for `for_s` (until healed, if 0)",
    "cut_down": "only messages to the learner are lost for `for_s` (until healed, if 0)",
    "lose_up": "the next `count` messages to the syncer are lost",
    "lose_down": "the next `count` messages to the learner are lost",
    "delay": "messages of a learner take `delay_s` longer each way, give or take `jitter_s`, for `for_s`",
    "loss": "each message of a learner is lost with probability `share`, for `for_s`",
    "bandwidth": "fragments of a learner travel at `bytes_per_s` each way for `for_s`, control messages as ever",
    "nan": "the next `count` contributions of a learner hold a NaN",
    "inf": "the next `count` contributions of a learner hold an infinity",
    "scale": "the next `count` updates of a learner are multiplied by `factor`",
    "flip": "the next `count` updates of a learner have the opposite sign",
    "random": "the next `count` updates of a learner are random, of the same norm",
    "corrupt": "bytes of the next `count` contributions of a learner change after they were coded",
    "shape": "the next `count` contributions of a learner lack their last element",
    "add": "one more learner takes part from now on; it gets the next id",
    "remove": "a learner leaves for good",
    "kill_syncer": "SIGKILL of the syncer; it starts again after `down_s`",
    "stall_syncer": "SIGSTOP of the syncer for `for_s`",
}
"""Kinds of fault and what they do."""

ROSTER_KINDS = ("add", "remove")
"""They change who takes part, and are no harm to anybody."""
SCENARIO = "scenario"
"""Who asks for them where a scenario does."""
SYNCER_KINDS = ("kill_syncer", "stall_syncer")
ENDING_KINDS = ("kill", "exit", "kill_syncer")
"""Their process ends."""
LINK_KINDS = ("cut", "cut_up", "cut_down", "lose_up", "lose_down", "delay", "loss", "bandwidth")
LASTING_KINDS = ("slow", *LINK_KINDS)
"""They act on a learner in all its lives until their time is over, they are used up, or somebody heals it."""
NUMBER_KINDS = ("nan", "inf", "scale", "flip", "random", "corrupt", "shape")
"""They act on what a learner sends (`workbench.algorithms.poisons`)."""
COUNTED_KINDS = ("lose_up", "lose_down", *NUMBER_KINDS)
"""They act on the next ``count`` messages, not for a time."""

FOREVER_NS = 2**62


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes
    ----------
    kind : str
        One of `FAULT_KINDS`.
    at_ns, for_ns : int
        When it begins [ns of the run's own clock] and how long it lasts.
    learner : int
        Its target; -1 for the syncer.
    factor : float
        Of ``slow`` and ``scale``.
    count : int
        Of the kinds in `COUNTED_KINDS`.
    round_state : int
        With a value of `RoundState`: strike at the first event from ``at_ns`` on at which some round is
        in that state; -1 strikes at ``at_ns``.
    at_round, at_merge : int
        Strike when the round of this global step is opened, or when so many merges are done, instead of at
        ``at_ns``; -1: not so.
    every_ns, times : int
        Strike again so long after the last time, so many times in all (0: as long as the run goes on).
    delay_ns, jitter_ns : int
        Of ``delay`` [ns].
    share : float
        Of ``loss``, 0 to 1.
    bytes_per_s : float
        Of ``bandwidth``.
    persistent : bool
        The learner's own weights are poisoned too.
    seed : int
        Of what is drawn; -1: derived from the run's seed and the number of the fault.
    planned : int
        Number in the plan of the run, from 1; 0: somebody asked for it.
    """

    kind: str
    at_ns: int
    learner: int = -1
    for_ns: int = 0
    factor: float = 1.0
    count: int = 1
    round_state: int = -1
    at_round: int = -1
    at_merge: int = -1
    every_ns: int = 0
    times: int = 1
    delay_ns: int = 0
    jitter_ns: int = 0
    share: float = 0.0
    bytes_per_s: float = 0.0
    persistent: bool = False
    seed: int = -1
    planned: int = 0

    @property
    def is_tied(self) -> bool:
        """Whether a round or a number of merges says when it strikes, not a time."""
        return self.at_round >= 0 or self.at_merge >= 0


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


def until_ns(fault: Fault, now: int, effect: bool) -> int:
    """When a fault that strikes now is over as far as that is known [ns]; now for one that acts on messages."""
    if not effect or fault.kind in COUNTED_KINDS:
        return now
    if fault.for_ns:
        return now + fault.for_ns
    return FOREVER_NS if fault.kind in (*ENDING_KINDS, *LASTING_KINDS) else now


def injected(fault: Fault, number: int, now: int, effect: bool, skipped: bool = False) -> dict[str, Any]:
    """Columns of the FAULT_INJECTED record of a fault that strikes now.

    ``number`` is its own in the run; it is ``skipped`` if it came due while nothing ran.
    """
    detail = {
        "fault": number,
        "until_ns": until_ns(fault, now, effect),
        "factor": fault.factor,
        "count": fault.count,
        "effect": int(effect),
    }
    if fault.kind == "delay":
        detail |= {"delay_ns": fault.delay_ns, "jitter_ns": fault.jitter_ns}
    elif fault.kind == "loss":
        detail["share"] = fault.share
    elif fault.kind == "bandwidth":
        detail["bytes_per_s"] = fault.bytes_per_s
    elif fault.kind in NUMBER_KINDS:
        detail["persistent"] = int(fault.persistent)
    if fault.planned:
        detail["planned"] = fault.planned
    if skipped:
        detail["skipped"] = 1
    return {"peer": target_of(fault), "reason": fault.kind, "value": fault.for_ns / 1e9, "detail": detail}


def struck_fault(record: Record) -> Fault:
    """The fault that a FAULT_INJECTED record tells of; what it draws with is not on the record."""
    names = ("factor", "count", "delay_ns", "jitter_ns", "share", "bytes_per_s")
    more: dict[str, Any] = {name: record.detail[name] for name in names if name in record.detail}
    return Fault(
        record.reason,
        record.time_ns,
        max(-1, learner_of(record.peer)),
        round(record.value * 1e9),
        persistent=bool(record.detail.get("persistent")),
        **more,
    )


def ended(fault: Fault, number: int, began: int, now: int, why: str) -> dict[str, Any]:
    """Columns of the FAULT_ENDED record of a fault that struck at ``began``; ``why``: over, healed or used_up."""
    detail = {"fault": number, "why": why, "began_ns": began}
    return {"peer": target_of(fault), "reason": fault.kind, "value": (now - began) / 1e9, "detail": detail}


def kind_and_target(fault: Fault) -> str:
    """What a fault does to whom, in a few words.

    Examples
    --------
    >>> [kind_and_target(fault) for fault in (Fault("kill", 0, 2), Fault("kill_syncer", 0), Fault("add", 0))]
    ['kill of L2', 'kill of the syncer', 'add of a learner']
    """
    if fault.learner < 0:
        return f"{fault.kind.removesuffix('_syncer')} of {'a learner' if fault.kind == 'add' else 'the syncer'}"
    return f"{fault.kind} of {label_of(process_of(fault.learner))}"


def target_of(fault: Fault) -> int:
    """Process number of the target."""
    return SYNCER if fault.learner < 0 else process_of(fault.learner)
