"""Records that a counterfactual leaves out: those of numeric faults; whoever recorded them counts on without a gap."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from workbench.algorithms.seeds import sub_seed
from workbench.protocol.messages import StateCopy
from workbench.protocol.poisoning import WEIGHTS
from workbench.protocol.records import Kind, Record, process_of
from workbench.replay.counterfactual.plan import Struck
from workbench.replay.program import FaultApplied, FragmentCaptured, Step

SEED_MASK = 0x7FFFFFFFFFFFFFFF


class LeftOut:
    """What numeric faults recorded, and how everything else is numbered without it.

    Parameters
    ----------
    records : sequence of Record
        Of the parent.
    faults : iterable of Struck
        Numeric ones, which are gone.
    """

    def __init__(self, records: Sequence[Record] = (), faults: Iterable[Struck] = ()) -> None:
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

    def __bool__(self) -> bool:
        return bool(self.gone)

    def seq(self, process: int, seq: int) -> int:
        """The number of a record without those that are left out."""
        left_out = self._seqs.get(process)
        return seq - bisect_right(left_out, seq) if left_out else seq

    def clock(self, clock: tuple[int, ...]) -> tuple[int, ...]:
        """A vector clock in the new numbers."""
        return tuple(self.seq(process, seq) for process, seq in enumerate(clock)) if self.gone else clock

    def record(self, r: Record) -> Record:
        """A record in the new numbers."""
        if not self.gone:
            return r
        cause = (r.cause[0], self.seq(*r.cause)) if r.cause is not None else None
        columns = {"seq": self.seq(r.process, r.seq), "clock": self.clock(r.clock), "cause": cause}
        copier = _copier(r)
        if copier >= 0:
            columns["version"] = self.seq(copier, r.version)
        return msgspec.structs.replace(r, **columns)

    def records(self, given: Iterable[Record]) -> list[Record]:
        """Records in the new numbers, without those that are left out."""
        return [self.record(r) for r in given if (r.process, r.seq) not in self.gone]

    def message(self, message: Any, process: int) -> Any:
        """A learner's message in the new numbers; its records are left to the caller."""
        if not self.gone:
            return message
        columns: dict[str, Any] = {"clock": self.clock(message.clock)}
        if hasattr(message, "origin"):
            columns["origin"] = self.seq(process, message.origin)
        if isinstance(message, StateCopy):
            columns["copied"] = self.seq(process, message.copied)
        return msgspec.structs.replace(message, **columns)

    def program(self, process: int, steps: list[Step]) -> list[Step]:
        """A learner's program without the faults."""
        if not self.gone:
            return steps
        kept: list[Step] = []
        for step in steps:
            if isinstance(step, FragmentCaptured) and (process, step.fragment, step.round) in self._poisoned:
                kept.append(step._replace(poison=None))
            elif not (isinstance(step, FaultApplied) and (process, step.fragment, WEIGHTS) in self._poisoned):
                kept.append(step)
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
