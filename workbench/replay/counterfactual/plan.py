"""The faults of a tape as a plan: kept, removed, moved, or with others added."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from workbench.config import ConfigError
from workbench.protocol.acting import seeded
from workbench.protocol.faults import ENDING_KINDS, LASTING_KINDS, NUMBER_KINDS, Fault, kind_and_target, struck_fault
from workbench.protocol.records import SYNCER, Kind, Record
from workbench.protocol.scenario import fault_of
from workbench.replay.counterfactual.ends import END, Ended, ends_of, ends_without
from workbench.replay.counterfactual.parent import Parent

SECOND = 10**9
SHOWN = 8
"""Faults that an error names."""


class Struck(NamedTuple):
    """A fault of the tape: its number there, when it struck, at which event, whether its target was there.

    ``began_ns`` is the start of rounds, from which people count; one that is ``skipped`` came due while nothing ran.
    """

    number: int
    time_ns: int
    event: int
    effect: bool
    fault: Fault
    began_ns: int = 0
    skipped: bool = False

    @property
    def name(self) -> str:
        """As people call it."""
        at_s = (self.time_ns - self.began_ns) / SECOND
        return f"{kind_and_target(self.fault)} at {at_s:.2f} s (fault {self.number})"


def fault_words(fault: Fault, began_ns: int) -> str:
    """A fault that is to strike, as people call it."""
    if fault.kind == "late":
        return f"{kind_and_target(fault)}, started {fault.for_ns / SECOND:.2f} s later"
    when = f"{(fault.at_ns - began_ns) / SECOND:.2f} s"
    if fault.is_tied:
        when = f"round {fault.at_round}" if fault.at_round >= 0 else f"merge {fault.at_merge}"
    return f"{kind_and_target(fault)} at {when}"


def faults_of(parent: Parent) -> list[Struck]:
    """All faults of a tape, in order."""
    scripted = _scripted(parent)
    found: list[Struck] = []
    for event, r in enumerate(parent.records):
        if r.kind == Kind.FAULT_INJECTED:
            own = int(r.detail.get("fault", len(found) + 1))
            # after a resume of real processes faults are numbered anew
            number = own if all(s.number != own for s in found) else max(s.number for s in found) + 1
            fault = _fault(r, number, _end_of(parent.records, event, own), parent)
            effect = bool(r.detail.get("effect"))
            skipped = bool(r.detail.get("skipped"))
            found.append(Struck(number, r.time_ns, event, effect, _tied(fault, scripted), parent.began_ns, skipped))
    return sorted(found, key=lambda s: s.time_ns)


def _end_of(records: Sequence[Record], event: int, number: int) -> Record | None:
    """The record of the end of the fault that struck at an event; None if another has its number before that."""
    mine = (r for r in islice(records, event + 1, None) if r.kind in (Kind.FAULT_INJECTED, Kind.FAULT_ENDED))
    found = next((r for r in mine if r.detail.get("fault") == number), None)
    return found if found is not None and found.kind == Kind.FAULT_ENDED else None


def _fault(r: Record, number: int, ended: Record | None, parent: Parent) -> Fault:
    fault = struck_fault(r)
    for_ns = fault.for_ns
    if r.reason in LASTING_KINDS and ended is not None:
        for_ns = ended.time_ns - r.time_ns
    if r.reason in ENDING_KINDS:
        for_ns = _back_after(r, parent.records, for_ns)
    return replace(fault, for_ns=for_ns, seed=seeded(fault, number, parent.config.seed))


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


def chosen(struck: Sequence[Struck], without: Sequence[int | str]) -> list[Struck]:
    """The faults that are to be removed: by number, or all of a kind, or of a kind at a learner (``kill:2``).

    ``end`` and ``end:2`` name processes that ended without a fault; see `ends_without`.

    Raises
    ------
    ConfigError
        Nothing on the tape is called so.
    """
    found: dict[int, Struck] = {}
    for name in without:
        if str(name).partition(":")[0] == END:
            continue
        mine = [s for s in struck if _is_called(s, str(name))]
        if not mine:
            raise ConfigError(
                f"without = {name!r}: no fault of the tape is called so; allowed: its number, a kind (kill), or a "
                f"kind at a learner (kill:2); {_known(struck)}"
            )
        found.update({s.number: s for s in mine})
    return list(found.values())


def _known(struck: Sequence[Struck]) -> str:
    more = f" and {len(struck) - SHOWN} more" if len(struck) > SHOWN else ""
    return f"the tape has {'; '.join(s.name for s in struck[:SHOWN]) or 'none'}{more}"


def _check_moved(
    parent: Parent, struck: Sequence[Struck], removed: Sequence[Struck], moved: Mapping[int, float]
) -> None:
    """Refuse faults that are not there, and times at which nothing can strike.

    Raises
    ------
    ConfigError
        With what is allowed.
    """
    last = (parent.ended_ns - parent.began_ns) / SECOND
    for number, seconds in moved.items():
        if all(s.number != number for s in struck):
            raise ConfigError(f"moved: there is no fault {number}; {_known(struck)}")
        if any(s.number == number for s in removed):
            raise ConfigError(f"fault {number} is to be removed and to be moved; leave one of the two out")
        if not 0.0 <= seconds <= last:
            raise ConfigError(
                f"moved: fault {number} to {seconds:g} s; allowed: 0 to {last:.2f}, seconds from the start of rounds "
                "to the end of the tape; to remove it, name it in without"
            )


def _is_called(struck: Struck, name: str) -> bool:
    kind, _, learner = name.partition(":")
    if name.isdecimal():
        return struck.number == int(name)
    return struck.fault.kind == kind and (not learner or learner.lstrip("L") == str(struck.fault.learner))


def _from(began_ns: int, fault: Fault) -> Fault:
    """A fault whose time counts from the start of rounds on the clock of the run."""
    return fault if fault.is_tied or fault.kind == "late" else replace(fault, at_ns=began_ns + fault.at_ns)


def _first_ns(parent: Parent, fault: Fault) -> int:
    """When a fault strikes if everything goes as on the tape; what the tape does not reach strikes behind it."""
    if not fault.is_tied:
        return max(0, fault.at_ns)
    if fault.at_round >= 0:
        opened = (r.time_ns for r in parent.records if r.kind == Kind.ROUND_OPENED and r.round >= fault.at_round)
        return next(opened, parent.ended_ns)
    merged = (r.time_ns for r in parent.records if r.kind == Kind.MERGED)
    return next(islice(merged, max(0, fault.at_merge - 1), None), parent.ended_ns)


@dataclass(frozen=True)
class ChildFaults:
    """Faults of the child: those that stay, those that are gone, those that are new."""

    kept: list[Struck]
    removed: list[Struck]
    added: list[Fault]
    ends: list[Ended]
    added_ns: list[int]
    """When each of the added can strike first."""
    spared: list[Ended]
    """Ends of processes that are left out."""

    @classmethod
    def of(
        cls, parent: Parent, without: Sequence[int | str], moved: Mapping[int, float], added: Sequence[Fault]
    ) -> ChildFaults:
        """Sort the faults of a tape; times that are given count from the start of rounds.

        Raises
        ------
        ConfigError
            Nothing on the tape is called so, or nothing can strike at such a time.
        """
        struck, began = faults_of(parent), parent.began_ns
        removed = chosen(struck, without)
        _check_moved(parent, struck, removed, moved)
        new = [_from(began, fault) for fault in added]
        for s in struck:
            if s.number in moved:
                removed.append(s)
                at_ns = began + int(moved[s.number] * SECOND)
                new.append(replace(s.fault, at_ns=at_ns, at_round=-1, at_merge=-1))
        gone = {s.number for s in removed}
        kept = [s for s in struck if s.number not in gone]
        ends = ends_of(parent, {(s.fault.learner, s.time_ns) for s in struck if s.fault.kind in ENDING_KINDS})
        spared = ends_without(ends, without)
        staying = [end for end in ends if end not in spared]
        return cls(kept, removed, new, staying, [_first_ns(parent, fault) for fault in new], spared)

    @property
    def is_changed(self) -> bool:
        """Whether anything is other than on the tape."""
        return bool(self.removed or self.added or self.spared)

    @property
    def gone(self) -> list[str]:
        """What is left out, as people call it."""
        return [s.name for s in self.removed] + [e.name for e in self.spared]

    @property
    def first_gone(self) -> int | None:
        """The event that says so first of what is left out, where that is what makes the difference first."""
        acted = [(s.time_ns, s.event) for s in self.removed if s.effect] + [(e.first_ns, e.event) for e in self.spared]
        return next((event for time_ns, event in acted if time_ns == self.cut_ns), None)

    @property
    def cut_ns(self) -> int | None:
        """Before when nothing is other than on the tape."""
        times = [s.time_ns for s in self.removed if s.effect] + self.added_ns + [e.first_ns for e in self.spared]
        return min(times, default=None)

    @property
    def are_numeric(self) -> bool:
        """Whether all that is other than on the tape are numeric faults that are gone."""
        changed = self.added or self.spared
        return bool(self.removed) and not changed and all(s.fault.kind in NUMBER_KINDS for s in self.removed)
