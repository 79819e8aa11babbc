"""Durations of a tape by their keys, and draws from a learner's own where the tape has none (DESIGN section 3).

Step time by (learner, own step), pull by (learner, round), merge by (fragment, round), start-up by (learner, process
number).  What the tape does not have is drawn from the same learner's own values, by (seed, learner, key).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from workbench.algorithms import draws
from workbench.protocol.acting import TO_SYNCER
from workbench.protocol.messages import Fragment, Metadata, Notice, PeerState, Pull, Refused, StateCopy, Update, Welcome
from workbench.replay.counterfactual.measured import Measured

_KINDS = (
    "step", "meta", "up", "down", "update", "handed", "merge", "commit", "start", "adopt", "welcome", "copy", "state",
    "passed", "taken", "write", "notice",
)  # fmt: skip


class KeyedTimes:
    """Durations of a counterfactual's virtual time [ns].

    Parameters
    ----------
    by_epoch : sequence of Measured
        What the tape has, by the epochs of its run.
    seed : int
        Of the draws.
    bytes_ratio : float
        Size of a contribution now over its size on the tape: what a transfer takes beyond a message scales with it.

    Attributes
    ----------
    sent : Counter
        UPDATEs sent so far, by (learner, fragment, version).
    numbers : dict of int to int
        Number of each learner's process that there is.
    asked, drawn : Counter
        By kind: durations that were needed, and those that the tape does not have.
    epoch : int
        That of the counterfactual: what happened there on the tape counts first.
    """

    def __init__(self, by_epoch: Sequence[Measured], seed: int, bytes_ratio: float = 1.0, epoch: int = 0) -> None:
        self.by_epoch, self.seed, self.bytes_ratio, self.epoch = by_epoch, seed, bytes_ratio, epoch
        self.sent: Counter[tuple[int, int, int]] = Counter()
        self.numbers: dict[int, int] = {}
        self.asked: Counter[str] = Counter()
        self.drawn: Counter[str] = Counter()

    @property
    def measured(self) -> Measured:
        """What the tape has of this epoch, or of its last."""
        return self.by_epoch[min(self.epoch, len(self.by_epoch) - 1)]

    def _known(self, kind: str, learner: int, key: Hashable) -> int | None:
        """A duration of this epoch, or else of the latest that has it."""
        for measured in (self.measured, *reversed(self.by_epoch)):
            found = measured.tables[kind].get((learner, key))
            if found is not None:
                return found
        return None

    def begin_ns(self, process: int) -> int:
        """When a process of the run is started first."""
        return self.measured.begins.get(process, 0)

    def step_ns(self, learner: int, n: int) -> int:
        """From the boundary before own step ``n`` to its end, without stalls, waits and injected slow-downs."""
        return self._of("step", learner, n)

    def pause_ns(self, learner: int, n: int) -> int:
        """From the boundary before own step ``n`` to its beginning; the smallest of the learner where it is drawn."""
        known = self._known("pause", learner, n)
        return known if known is not None else min(self.measured.pool("pause", learner), default=0)

    def delay_ns(self, count: int) -> int:
        """One-way delay of what the tape has no time for: heartbeats, notices, a socket that opens or closes."""
        return self.measured.delay_ns

    def start_ns(self, learner: int, number: int) -> int:
        """From the start of a process to its first message."""
        self.numbers[learner] = number
        return self._of("start", learner, self.measured.number(learner, number))

    def adopt_ns(self, learner: int, number: int, source: str) -> int:
        """From WELCOME to the first state; from the coming of a peer's state to its adoption."""
        kind = "adopt" if source in ("initial", "own") else "taken"
        return self._of(kind, learner, self.measured.number(learner, number))

    def copy_ns(self, learner: int, number: int, snapshot: bool) -> int:
        """Until a donor's state lies there encoded."""
        return self._of("copy", learner, (int(snapshot), number))

    def write_ns(self, snapshot: int) -> int:
        """Until a snapshot lies on disk."""
        return self._of("write", -1, snapshot)

    def merge_ns(self, fragment: int, round_: int) -> int:
        """One merge."""
        return self._of("merge", -1, (fragment, round_))

    def commit_ns(self, fragment: int, round_: int) -> int:
        """From the record of a merge to its commit."""
        return self._of("commit", -1, (fragment, round_))

    def handed_ns(self, learner: int, fragment: int, version: int) -> int:
        """Until the transport has taken an UPDATE; asked for once for every sending, after its delay."""
        self.sent[learner, fragment, version] += 1
        return self._of("handed", learner, (fragment, version, self.sent[learner, fragment, version]))

    def sent_before(self, learner: int, origin: int, handed: bool) -> int:
        """The delay of an UPDATE that the tape's syncer sent with the record ``origin``, or until it was taken."""
        key = self.measured.sendings[origin]
        return self._of("handed" if handed else "update", learner, key)

    def gone_ns(self, learner: int, number: int, count: int) -> int:
        """Until the syncer sees that a killed process is gone."""
        known = self._known("gone", learner, number)
        return self.measured.delay_ns if known is None else known

    def ended_ns(self, learner: int, number: int) -> int:
        """Until the supervisor sees that a killed process has ended."""
        return self._known("ended", learner, number) or 0

    def late_ns(self, rounds: Sequence[int]) -> int:
        """How late the syncer wakes at the end of a grace window; the median where the tape's round had no such end."""
        table, usual = self.measured.tables["late"], self.measured.late_ns
        return max((table.get((-1, t), usual) for t in rounds), default=0)

    def message_ns(self, learner: int, direction: int, message: Any, count: int) -> int:
        """One-way delay of a message."""
        if direction == TO_SYNCER:
            return self._up(learner, message)
        if isinstance(message, Pull):
            return self._of("down", learner, message.round)
        if isinstance(message, Update):
            nth = self.sent[learner, message.fragment, message.version] + 1
            return self._of("update", learner, (message.fragment, message.version, nth))
        if isinstance(message, PeerState):
            return self._of("passed", learner, self.measured.number(learner, self.numbers.get(learner, 1)))
        if isinstance(message, Notice) and self.measured.has("notice", learner, message.round):
            return self._of("notice", learner, message.round)
        if isinstance(message, Welcome) and self.measured.has("welcome", learner, message.incarnation):
            return self._of("welcome", learner, message.incarnation)
        return self.measured.delay_ns

    def _up(self, learner: int, message: Any) -> int:
        if isinstance(message, Metadata) and not (message.waiting or message.awaiting):
            return self._of("meta", learner, message.n)
        if isinstance(message, Fragment):
            whole, base = self._of("up", learner, message.round), self.measured.delay_ns
            return whole if self.bytes_ratio == 1.0 else base + int(max(0, whole - base) * self.bytes_ratio)
        if isinstance(message, Refused):
            return self._of("up", learner, message.round)
        if isinstance(message, StateCopy) and not message.snapshot:
            return self._of("state", learner, (0, message.number))
        return self.measured.delay_ns

    def _of(self, kind: str, learner: int, key: Hashable) -> int:
        self.asked[kind] += 1
        is_cut_off = kind == "step" and (learner, key, self.numbers.get(learner, 1)) in self.measured.cut_off
        known = None if is_cut_off else self._known(kind, learner, key)
        if known is not None:
            return known
        self.drawn[kind] += 1
        pools = (measured.pool(kind, learner) for measured in (self.measured, *reversed(self.by_epoch)))
        pool = next(filter(None, pools), None)
        least = self.measured.least.get((kind, learner, key), 0)
        if not pool:
            return max(self.measured.delay_ns, least)
        parts = key if isinstance(key, tuple) else (key,)
        u = draws.uniform(self.seed, _KINDS.index(kind), learner + 1, *(int(part) for part in parts))
        return max(pool[int(u * len(pool))], least)
