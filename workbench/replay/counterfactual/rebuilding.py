"""The machine of a learner at a cut through the tape, run again on inputs that its records imply.

The inputs of learners are not on a tape, but their records say what they must have been: a step ended then, this PULL
and this UPDATE had come, and the messages are those that the syncer's machine sends.  The records that the machine
makes again are compared with those of the tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec

from workbench.protocol import copies, learner_state
from workbench.protocol.clocks import merged
from workbench.protocol.events import (
    Adopted,
    Captured,
    Connected,
    FaultActed,
    StateCopied,
    StepEnded,
)
from workbench.protocol.messages import (
    Begin,
    Change,
    CopyAsked,
    Marker,
    PeerState,
    Pull,
    Update,
    Welcome,
)
from workbench.protocol.records import SYNCER, Kind, Record
from workbench.protocol.settings import FixedSettings, LearnerSettings
from workbench.replay.counterfactual.comparing import unlike_rebuilt
from workbench.replay.counterfactual.hearing import Hearing
from workbench.replay.counterfactual.rebuilt import Mail, Rebuilt

BOUNDARY = (
    Kind.SETTING_APPLIED, Kind.CONTRIBUTION_ACKNOWLEDGED, Kind.UPDATE_FOLDED, Kind.STATE_COPIED, Kind.SNAPSHOT_RECORDED,
)  # fmt: skip
"""What a boundary records behind the step that ended there."""


class Rebuilding(Hearing):
    """One process of a learner, run again record by record; see `Hearing` for what it is made of."""

    def run(self) -> Rebuilt:
        """Take everything in."""
        self.machine.start(self.began_ns)
        self._give(self.asked_ns - self.delay_ns, Connected(self.connection))
        while self._at < len(self.own):
            record = self.own[self._at]
            before = len(self.made)
            self._uncaused(record.time_ns)
            _TAKE.get(Kind(record.kind), Rebuilding._nothing)(self, record)
            self._at += max(1, len(self.made) - before)
        self._died(2**62)
        self._hear_news(self.own[-1].time_ns if self.own else -1)
        self._settle()
        differing = unlike_rebuilt([*self.own, *self.later], self.made) + max(0, len(self.own) - len(self.made))
        last = self.own[-1].seq if self.own else -1
        more = [r for r in self.made if r.seq > last]
        marks = [msgspec.structs.replace(m, records=list(more)) for m in self.marks if m.origin > last]
        unsent = [r.seq for r in more]
        steps = [r.step for r in (*self.own, *more) if r.kind == Kind.STEP_ENDED]
        goes_on = not steps or (steps[-1] == self.machine.state.n and all(b == a + 1 for a, b in pairwise(steps)))
        return Rebuilt(
            self.machine, self.step, self.since_ns, self.mail, unsent, len(self.made), differing, goes_on,
            self.copies, self.cut, marks,
        )  # fmt: skip

    def _nothing(self, record: Record) -> None:
        """A record that follows from an input that was given before."""

    def _adopted(self, record: Record) -> None:
        message = _GIVERS.get(record.reason, Welcome)
        mail = self._find(message, record.cause[1]) if record.cause is not None else None
        if mail is not None:
            self._hand(mail, record.time_ns)
        self._updates_of_boundary(record)
        self._give(record.time_ns, Adopted(record.digest))

    def _stepped(self, record: Record) -> None:
        self._updates_of_boundary(record)
        d = record.detail
        event = StepEnded(record.value, record.tokens, d["batch"], d["accumulation"], d["start_ns"], d["injected_ns"])
        self.step = None
        self._give(record.time_ns, event)
        self._end_wait(record.time_ns)

    def _updates_of_boundary(self, record: Record) -> None:
        """What lay in the inbox when the boundary came, in the order in which it is folded.

        All folds of one boundary are of one global step; a later one was brought by an UPDATE that came by itself.
        """
        steps: set[int] = set()
        causes: list[Record] = []
        for other in (*self.own[self._at + 1 :], *self.later):
            if other.time_ns != record.time_ns or other.kind not in BOUNDARY:
                break
            if other.kind == Kind.UPDATE_FOLDED:
                steps.add(other.global_step)
            if len(steps) > 1:
                break
            causes.append(other)
        for other in sorted(causes, key=lambda r: r.kind == Kind.CONTRIBUTION_ACKNOWLEDGED):  # those are written first
            self._cause_of(other, record.time_ns)

    def _cause_of(self, record: Record, now: int) -> None:
        if record.kind == Kind.SNAPSHOT_RECORDED:
            assert record.cause is not None
            for channel in sorted(m.channel for m in self.mail if _is_marker(m.message, record.cause[1])):
                found = (m for m in self.mail if _is_marker(m.message, record.cause[1]) and m.channel == channel)
                self._hand(next(found), now)
            return
        if record.kind == Kind.STATE_COPIED:
            mail = self._find(CopyAsked, record.cause[1]) if record.cause is not None else None
        elif record.kind == Kind.SETTING_APPLIED:
            wanted = (m for m in self.mail if isinstance(m.message, Change) and m.message.revision == record.setting)
            mail = next(wanted, None)
        else:
            mail = self._find(Update, record.cause[1]) if record.cause is not None else None
        if mail is not None:
            self._hand(mail, now)

    def _alone(self, record: Record) -> None:
        self._cause_of(record, record.time_ns)

    def _pulled(self, record: Record) -> None:
        mail = self._find(Pull, record.cause[1]) if record.cause is not None else None
        if mail is None:
            return
        if record.kind == Kind.PULL_REFUSED and record.reason == "update_unfolded":
            self._unfolded(record)
        self._before_it(mail, record.time_ns)
        self._hand(mail, record.time_ns)
        if record.kind == Kind.FRAGMENT_CAPTURED:
            nbytes = record.detail.get("bytes", 0)
            self._give(record.time_ns, Captured(record.round, record.fragment, record.digest, nbytes, -1))

    def _unfolded(self, record: Record) -> None:
        """An UPDATE of the fragment lay there: the one that is folded next, and those that are folded before it."""
        if record.fragment in self.machine.state.inbox:
            return
        for other in (*self.own[self._at + 1 :], *self.later):
            if other.kind == Kind.UPDATE_FOLDED:
                self._cause_of(other, record.time_ns)
                if other.fragment == record.fragment:
                    return

    def _left(self, record: Record) -> None:
        number = int(record.value) if record.peer != SYNCER else -int(record.value)
        self._give(record.time_ns, StateCopied(number, record.digest, record.detail.get("bytes", 0), 0))

    def _faulted(self, record: Record) -> None:
        self._give(record.time_ns, FaultActed(record.reason, record.fragment, record.detail))

    def _settle(self) -> None:
        """What it has recorded is in the journal; its heartbeats go on in their own time."""
        state = self.machine.state
        if not self.own:
            return
        last = self.own[-1]
        more = [r for r in self.made if r.seq > last.seq]
        state.seq = more[-1].seq if more else last.seq
        state.clock = merged(state.clock, last.clock)
        state.outbox.unacked, state.outbox.acked, state.outbox.sent = more, last.seq, [last.seq, last.seq]
        state.outbox.progress_at = state.last_heard = last.time_ns
        beats = (last.time_ns - self.began_ns) // state.fixed.heartbeat_ns + 1
        state.next_beat = self.began_ns + beats * state.fixed.heartbeat_ns
        state.wake_at = state.next_beat
        if state.welcomed:
            state.join_again_at = learner_state.UNSET
        else:
            state.wake_at = min(state.wake_at, state.join_again_at)


def _is_marker(message: Any, origin: int) -> bool:
    return isinstance(message, Marker) and message.origin == origin


_GIVERS: dict[str, type] = {"peer": PeerState, "snapshot": Begin}
"""Which message brings a state, by its source."""

_TAKE: dict[Kind, Any] = {
    Kind.STATE_ADOPTED: Rebuilding._adopted,
    Kind.RESTORED: Rebuilding._adopted,
    Kind.STATE_COPIED: Rebuilding._alone,
    Kind.SNAPSHOT_RECORDED: Rebuilding._alone,
    Kind.STATE_LEFT: Rebuilding._left,
    Kind.STEP_ENDED: Rebuilding._stepped,
    Kind.UPDATE_FOLDED: Rebuilding._alone,
    Kind.CONTRIBUTION_ACKNOWLEDGED: Rebuilding._alone,
    Kind.SETTING_APPLIED: Rebuilding._alone,
    Kind.FRAGMENT_CAPTURED: Rebuilding._pulled,
    Kind.PULL_REFUSED: Rebuilding._pulled,
    Kind.FAULT_APPLIED: Rebuilding._faulted,
}


def rebuild(
    learner_id: int,
    number: int,
    fixed: FixedSettings,
    settings: LearnerSettings,
    own: Sequence[Record],
    later: Sequence[Record],
    began: tuple[int, int],
    mail: Sequence[Mail],
    deaths: Sequence[int],
    delay_ns: int,
    snapshot: int = -1,
    facts: dict[str, Any] | None = None,
) -> Rebuilt:
    """A learner's machine after the records ``own`` of its process ``number``; see `Rebuilding`.

    One that went on from a ``snapshot`` has from there its counters, ``facts``.
    """
    state = learner_state.new_state(learner_id, number, fixed, settings)
    if facts is not None:
        copies.restore(state, facts, snapshot)
    return Rebuilding(state, own, later, began, mail, deaths, delay_ns).run()
