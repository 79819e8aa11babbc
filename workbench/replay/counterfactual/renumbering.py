"""Records that a counterfactual leaves out, those of numeric faults, or puts in, those of a change of settings.

Whoever recorded them counts on without a gap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from workbench.algorithms.seeds import sub_seed
from workbench.protocol.messages import Metadata, StateCopy
from workbench.protocol.poisoning import WEIGHTS
from workbench.protocol.records import Kind, Record, process_of
from workbench.replay.counterfactual.plan import Struck
from workbench.replay.counterfactual.put_in import PutIn
from workbench.replay.program import FaultApplied, FragmentCaptured, Step

SEED_MASK = 0x7FFFFFFFFFFFFFFF


class Changed(NamedTuple):
    """A learner applies the change that is put in: a step of its program that the tape has no event of."""

    event: int


class Renumbered:
    """What numeric faults recorded, what a change records, and how everything else is numbered.

    Parameters
    ----------
    records : sequence of Record
        Of the parent.
    faults : iterable of Struck
        Numeric ones, which are gone.
    put_in : PutIn, optional
        A change of settings.
    """

    def __init__(
        self, records: Sequence[Record] = (), faults: Iterable[Struck] = (), put_in: PutIn | None = None
    ) -> None:
        self._records, self.put_in = records, put_in
        self.gone: set[tuple[int, int]] = set()
        self._seqs: dict[int, list[int]] = defaultdict(list)
        numbers = {s.number for s in faults}
        seeds = {(process_of(s.fault.learner), s.fault.kind, seed) for s in faults for seed in _seeds(s)}
        for r in records:
            own = r.kind in (Kind.FAULT_INJECTED, Kind.FAULT_ENDED) and r.detail.get("fault") in numbers
            acted = r.kind == Kind.FAULT_APPLIED and (r.process, r.reason, r.detail.get("seed")) in seeds
            if own or acted:
                self.gone.add((r.process, r.seq))
                self._seqs[r.process].append(r.seq)
        self._poisoned = {
            (r.process, r.fragment, r.detail.get("round")) for r in records if (r.process, r.seq) in self.gone
        }

    @property
    def _is_as_recorded(self) -> bool:
        return not self.gone and self.put_in is None

    def seq(self, process: int, seq: int) -> int:
        """The number of a record without those that are left out, and with those that are put in."""
        left_out = self._seqs.get(process)
        more = self.put_in.places.get(process) if self.put_in is not None else None
        fewer = bisect_right(left_out, seq) if left_out else 0
        return seq - fewer + (bisect_right(more, seq) if more else 0)

    def clock(self, clock: tuple[int, ...]) -> tuple[int, ...]:
        """A vector clock in the new numbers."""
        if self._is_as_recorded:
            return clock
        return tuple(self.seq(process, seq) for process, seq in enumerate(clock))

    def record(self, r: Record) -> Record:
        """A record in the new numbers."""
        if self._is_as_recorded:
            return r
        cause = (r.cause[0], self.seq(*r.cause)) if r.cause is not None else None
        columns: dict[str, Any] = {"seq": self.seq(r.process, r.seq), "clock": self.clock(r.clock), "cause": cause}
        columns["setting"] = self.setting(r)
        copier = _copier(r)
        if copier >= 0:
            columns["version"] = self.seq(copier, r.version)
        return msgspec.structs.replace(r, **columns)

    def setting(self, r: Record) -> int:
        """The revision that a record names now."""
        return r.setting if self.put_in is None else self.put_in.setting(r)

    def records(self, given: Iterable[Record]) -> list[Record]:
        """Records in the new numbers, without those that are left out, with those that are put in."""
        if self._is_as_recorded:
            return list(given)
        return [
            made for r in given for made in (*self.before(r), self.record(r)) if (r.process, r.seq) not in self.gone
        ]

    def before(self, r: Record) -> list[Record]:
        """What is put in before a record of the tape: what its learner records of the change."""
        key = (r.process, r.seq)
        if self.put_in is None or key not in self.put_in.boundaries:
            return []
        boundary = self._records[self.put_in.boundaries[key]]
        return [self.put_in.made(boundary, self.seq(*key) - 1, self.clock(boundary.clock))]

    def message(self, message: Any, process: int) -> Any:
        """A learner's message in the new numbers; its records are left to the caller."""
        if self._is_as_recorded:
            return message
        columns: dict[str, Any] = {"clock": self.clock(message.clock)}
        if hasattr(message, "origin"):
            columns["origin"] = self.seq(process, message.origin)
        if isinstance(message, StateCopy):
            columns["copied"] = self.seq(process, message.copied)
        if isinstance(message, Metadata) and self.put_in is not None:
            seq = message.clock[process] if process < len(message.clock) else 0
            columns["revision"] = self.put_in.message_revision(process, seq, message.revision)
        return msgspec.structs.replace(message, **columns)

    def program(self, process: int, steps: Sequence[Step | Changed]) -> Sequence[Step | Changed]:
        """A learner's program without the faults, and with the change."""
        if self._is_as_recorded:
            return steps
        changed = {} if self.put_in is None else {b: key for key, b in self.put_in.boundaries.items()}
        kept: list[Step | Changed] = []
        for step in steps:
            if isinstance(step, FragmentCaptured) and (process, step.fragment, step.round) in self._poisoned:
                kept.append(step._replace(poison=None))
            elif not (isinstance(step, FaultApplied) and (process, step.fragment, WEIGHTS) in self._poisoned):
                kept.append(step)
            if step.event in changed and changed[step.event][0] == process:
                kept.append(Changed(-1 - step.event))
        return kept


def _copier(r: Record) -> int:
    """The process whose record a column names: that at which it copied its state; -1 where there is none."""
    if r.kind == Kind.STATE_LEFT:
        return r.process
    if r.kind == Kind.STATE_SENT:
        return int(r.detail["donor"])
    return r.peer if r.kind == Kind.STATE_ADOPTED and r.reason == "peer" else -1


def _seeds(s: Struck) -> list[int]:
    return [sub_seed(s.fault.seed, nth) & SEED_MASK for nth in range(s.fault.count)]
