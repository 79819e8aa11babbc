"""The faults of a tape as a plan: kept, removed, moved, or with others added."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from workbench.config import ConfigError
from workbench.protocol.acting import seeded
from workbench.protocol.faults import ENDING_KINDS, LASTING_KINDS, NUMBER_KINDS, Fault
from workbench.protocol.records import SYNCER, Kind, Record, label_of, learner_of, process_of
from workbench.protocol.scenario import fault_of
from workbench.replay.counterfactual.parent import Parent

SECOND = 10**9


class Struck(NamedTuple):
    """A fault of the tape: its number there, when it struck, at which event, whether its target was there."""

    number: int
    time_ns: int
    event: int
    effect: bool
    fault: Fault

    @property
    def name(self) -> str:
        """As people call it."""
        target = "the syncer" if self.fault.learner < 0 else label_of(process_of(self.fault.learner))
        return f"{self.fault.kind} of {target} at {self.time_ns / SECOND:.2f} s (fault {self.number})"


class Ended(NamedTuple):
    """A learner's process that ended without a fault, and when the next of it was started (-1: never)."""

    learner: int
    time_ns: int
    how: str
    again_ns: int


def faults_of(parent: Parent) -> list[Struck]:
    """All faults of a tape, in order."""
    ended = {r.detail["fault"]: r for r in parent.records if r.kind == Kind.FAULT_ENDED}
    scripted = _scripted(parent)
    found: list[Struck] = []
    for event, r in enumerate(parent.records):
        if r.kind == Kind.FAULT_INJECTED:
            number = int(r.detail.get("fault", len(found) + 1))
            fault = _fault(r, number, ended.get(number), parent)
            found.append(Struck(number, r.time_ns, event, bool(r.detail.get("effect")), _tied(fault, scripted)))
    return sorted(found, key=lambda s: s.time_ns)


def _fault(r: Record, number: int, ended: Record | None, parent: Parent) -> Fault:
    learner = max(-1, learner_of(r.peer))
    for_ns = round(r.value * SECOND)
    if r.reason in LASTING_KINDS and ended is not None:
        for_ns = ended.time_ns - r.time_ns
    if r.reason in ENDING_KINDS:
        for_ns = _back_after(r, parent.records, for_ns)
    names = ("factor", "count", "delay_ns", "jitter_ns", "share", "bytes_per_s")
    more: dict[str, Any] = {name: r.detail[name] for name in names if name in r.detail}
    fault = Fault(r.reason, r.time_ns, learner, for_ns, persistent=bool(r.detail.get("persistent")), **more)
    return replace(fault, seed=seeded(fault, number, parent.config.seed))


def _back_after(r: Record, records: Sequence[Record], planned: int) -> int:
    """From a kill to the start of the next process, which the supervisor's own pace is part of."""
    kind = Kind.SYNCER_STARTED if r.peer == SYNCER else Kind.PROCESS_STARTED
    for later in records:
        mine = later.kind == kind and (r.peer == SYNCER or later.peer == r.peer)
        if mine and later.time_ns > r.time_ns:
            return max(1, later.time_ns - r.time_ns)
    return planned


def _scripted(parent: Parent) -> list[Fault]:
    """Faults of the scenario that the run was started with, if it was."""
    text = parent.header.get("faults", {}).get("scenario", "")
    try:
        tables = tomllib.loads(text).get("fault", []) if text else []
        return [fault_of(table, "scenario", parent.config.learners) for table in tables]
    except (tomllib.TOMLDecodeError, ConfigError):
        return []  # of another version: its faults keep their time


def _tied(fault: Fault, scripted: list[Fault]) -> Fault:
    """A fault that the scenario ties to a round or to a number of merges follows that, with the seed it names."""
    for given in scripted:
        if (given.kind, given.learner) == (fault.kind, fault.learner):
            scripted.remove(given)
            seed = given.seed if given.seed >= 0 else fault.seed
            return replace(fault, at_round=given.at_round, at_merge=given.at_merge, seed=seed)
    return fault


def ends_of(parent: Parent) -> list[Ended]:
    """Learner processes that ended in the middle of the run without a fault that the tape knows."""
    expected = {(s.fault.learner, s.time_ns) for s in faults_of(parent) if s.fault.kind in ENDING_KINDS}
    found = []
    for event, r in enumerate(parent.records):
        learner = learner_of(r.peer)
        if r.kind != Kind.PROCESS_ENDED or learner < 0 or r.reason == "exit 0":
            continue
        if any(m == learner and 0 <= r.time_ns - at < 2 * SECOND for m, at in expected):
            continue
        later = (x for x in parent.records[event:] if x.kind == Kind.PROCESS_STARTED and x.peer == r.peer)
        found.append(Ended(learner, r.time_ns, r.reason, next((x.time_ns for x in later), -1)))
    return found


def chosen(struck: Sequence[Struck], without: Sequence[int | str]) -> list[Struck]:
    """The faults that are to be removed: by number, or all of a kind, or of a kind at a learner (``kill:2``).

    Raises
    ------
    ConfigError
        Nothing on the tape is called so.
    """
    found: dict[int, Struck] = {}
    for name in without:
        mine = [s for s in struck if _is_called(s, str(name))]
        if not mine:
            known = "; ".join(f"{s.number}: {s.name}" for s in struck[:8]) or "none"
            raise ConfigError(
                f"without = {name!r}: no fault of the tape is called so; allowed: its number, a kind (kill), or a "
                f"kind at a learner (kill:2); the tape has {known}"
            )
        found.update({s.number: s for s in mine})
    return list(found.values())


def _is_called(struck: Struck, name: str) -> bool:
    kind, _, learner = name.partition(":")
    if name.isdecimal():
        return struck.number == int(name)
    return struck.fault.kind == kind and (not learner or learner.lstrip("L") == str(struck.fault.learner))


@dataclass(frozen=True)
class ChildFaults:
    """Faults of the child: those that stay, those that are gone, those that are new."""

    kept: list[Struck]
    removed: list[Struck]
    added: list[Fault]
    ends: list[Ended]

    @classmethod
    def of(
        cls, parent: Parent, without: Sequence[int | str], moved: Mapping[int, float], added: Sequence[Fault]
    ) -> ChildFaults:
        """Sort the faults of a tape.

        Raises
        ------
        ConfigError
            Nothing on the tape is called so.
        """
        struck = faults_of(parent)
        removed = chosen(struck, [*without, *moved])
        new = list(added)
        for s in removed:
            if s.number in moved:
                new.append(replace(s.fault, at_ns=int(moved[s.number] * SECOND), at_round=-1, at_merge=-1))
        gone = {s.number for s in removed}
        return cls([s for s in struck if s.number not in gone], removed, new, ends_of(parent))

    @property
    def cut_ns(self) -> int | None:
        """Before when nothing is other than on the tape."""
        times = [s.time_ns for s in self.removed if s.effect] + [max(0, f.at_ns) for f in self.added]
        return min(times, default=None)

    @property
    def are_numeric(self) -> bool:
        """Whether all that is other than on the tape are numeric faults that are gone."""
        return bool(self.removed) and not self.added and all(s.fault.kind in NUMBER_KINDS for s in self.removed)
