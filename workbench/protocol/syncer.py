"""The syncer machine: (input, now) in, actions out; no socket, thread, clock or array of its own.

A composition: membership, arrivals, pacer, one round machine per round in flight, updates, settings.
Drivers call `SyncerMachine.handle` with what happened and do what it returns, in order; they call it
again with `Woken` at `SyncerMachine.wake_at`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.config import ConfigError
from workbench.protocol import (
    admission,
    arrivals,
    deadlines,
    membership,
    merging,
    pacer,
    quarantine,
    quorum,
    rosters,
    rounds,
    snapshots,
    state_transfers,
    updates,
)
from workbench.protocol.actions import Action, Finish
from workbench.protocol.events import (
    AddAsked,
    CommitDone,
    Disconnected,
    Handed,
    MergeDone,
    QuarantineAsked,
    Received,
    RecordsCame,
    RemoveAsked,
    SettingsAsked,
    SnapshotAsked,
    SnapshotWritten,
    StopAsked,
    SyncerInput,
)
from workbench.protocol.messages import End
from workbench.protocol.moments import NEVER, UNSET
from workbench.protocol.records import Kind
from workbench.protocol.round_state import RoundState
from workbench.protocol.settings import SECOND, FixedSettings, SettingsBook
from workbench.protocol.syncer_core import LATE_WAKE_NS, SyncerCore
from workbench.protocol.syncer_state import SyncerState, shift


def new_state(fixed: FixedSettings, book: SettingsBook) -> SyncerState:
    """State of a syncer that has seen nothing: version 0 of every fragment is the initial weights."""
    count = fixed.fragments
    state = SyncerState(
        fixed=fixed,
        book=book,
        members={},
        versions=[0] * count,
        version_rounds=[0] * count,
        merged_at=[NEVER] * count,
        sync_since=[UNSET] * count,
        outer_revision=[0] * count,
    )
    state.next_t, state.next_p = pacer.next_round(state, 0)
    state.closed_below = state.next_t
    return state


class SyncerMachine:
    """The syncer's protocol.

    Parameters
    ----------
    state : SyncerState
        From `new_state`, or from `restart.restore` after a crash.
    """

    def __init__(self, state: SyncerState) -> None:
        self.core = SyncerCore(state)

    @property
    def state(self) -> SyncerState:
        """What the machine knows."""
        return self.core.state

    @property
    def wake_at(self) -> int:
        """When the machine wants `Woken` at the latest [ns]."""
        return self.core.state.wake_at

    def start(
        self,
        now: int,
        reason: str = "new",
        uncommitted: Sequence[tuple[int, int, int]] = (),
        cut: dict[str, Any] | None = None,
        aborted: Sequence[tuple[int, int]] = (),
    ) -> list[Action]:
        """First actions of a process.

        Parameters
        ----------
        now : int
        reason : str
            ``new``, ``restart`` (the run goes on), ``resume`` (it had ended, or been lost).
        uncommitted, aborted : sequence
            As in `restart.Recovered`.
        cut : dict, optional
            The snapshot that a resume went back to, from `restart.cut_of`.
        """
        core = self._begin(now)
        state = core.state
        state.incarnation += 1
        core.record(Kind.SYNCER_STARTED, reason=reason, detail={} if cut is None else {"cut": cut})
        if reason == "resume":
            state.finished = False  # it may have been ended in order
            state.resumed_from = -1 if cut is None else state.resumed_from
        state.snapshot_at = now
        if cut is not None:
            core.record(Kind.RESTORED, value=float(cut["snapshot"]), digest=cut["digest"])
            for t, p in aborted:
                core.record(Kind.ROUND_ABORTED, round=t, fragment=p, reason="rolled_back")
            _fit_quorum(core)
        if reason != "new":
            _note_restart(core, uncommitted)
            quorum.judge(core)
        if state.start_until == UNSET:
            state.start_until = now + state.fixed.start_limit_ns
        state.next_beat = now + state.fixed.heartbeat_ns
        return self._settle()

    def handle(self, now: int, event: SyncerInput) -> list[Action]:
        """Take one input at time ``now`` [ns] and return what is to be done."""
        core = self._begin(now)
        state = core.state
        if state.finished:
            if isinstance(event, RecordsCame):
                arrivals.take_foreign_records(core, event.process, event.records)
            return core.out
        if state.wake_at != UNSET and now > state.wake_at + LATE_WAKE_NS:
            gap = now - state.wake_at
            shift(state, gap, now - state.fixed.heartbeat_limit_ns + LATE_WAKE_NS)
            core.record(Kind.SELF_STOPPED, value=gap / SECOND)
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(core, event)
        return self._settle()

    def _begin(self, now: int) -> SyncerCore:
        core = self.core
        core.now = now
        core.out = []
        return core

    def _settle(self) -> list[Action]:
        """Let everything that is due by now happen, then say when to be woken."""
        core = self.core
        deadlines.expire(core)
        deadlines.beat(core)
        moving = True
        while moving:
            moving = False
            for round_ in list(core.state.rounds.values()):
                while round_.t in core.state.rounds and rounds.advance(core, round_):
                    moving = True
            moving = pacer.open_rounds(core) or moving
        snapshots.start_when_due(core)
        _end_when_done(core)
        core.state.wake_at = _next_wake(core)
        return core.out


def _note_restart(core: SyncerCore, uncommitted: Sequence[tuple[int, int, int]]) -> None:
    """What the journal shows as merged is committed; what it shows as open starts again."""
    for t, p, version in uncommitted:
        core.record(Kind.MERGE_COMMITTED, round=t, fragment=p, version=version, reason="recovered")
    for round_ in core.state.rounds.values():
        round_.opened_at = core.now
        core.record(Kind.ROUND_RESTARTED, round=round_.t, fragment=round_.p, setting=round_.revision)


def _end_when_done(core: SyncerCore) -> None:
    state = core.state
    if not state.ending and state.merges >= state.fixed.rounds:
        _start_ending(core, "rounds")
    if state.ending and not state.finished:
        busy = bool(state.rounds) or any(m.connected for m in state.members.values())
        busy = busy or state.snapshot is not None
        if not busy or core.now >= state.ending_until:
            state.finished = True
            core.record(Kind.RUN_ENDED, reason=state.ending, value=float(state.merges))
            core.out.append(Finish(state.ending))


def _start_ending(core: SyncerCore, reason: str) -> None:
    """Tell the learners to leave; rounds in flight are given up, but what is being merged is brought to its end."""
    state = core.state
    state.ending = reason
    state.ending_until = core.now + state.fixed.heartbeat_limit_ns
    for member in state.members.values():
        if member.connected:
            core.send(member, End(member.incarnation, reason, member.known_seq, state.closed_below, state.clock))
    for round_ in list(state.rounds.values()):
        if round_.state < RoundState.MERGING:
            merging.abort(core, round_, "run_ended")
    if state.snapshot is not None and not state.snapshot.writing:
        snapshots.abandon(core, "run_ended")


def _next_wake(core: SyncerCore) -> int:
    """The earliest time at which something may be due."""
    state = core.state
    if state.finished:
        return UNSET
    wake = min(state.next_beat, snapshots.wake_at(core), state_transfers.wake_at(core))
    if state.ending:
        wake = min(wake, state.ending_until)
    if not state.began and state.start_until > core.now:
        wake = min(wake, state.start_until)
    if state.short_since != UNSET and not state.quorum_lost:
        wake = min(wake, state.short_since + quorum.SHORT_LIMIT_NS)
    for member in state.members.values():
        if member.connected:
            wake = min(wake, member.last_heard + state.fixed.heartbeat_limit_ns)
            if member.healed and not member.stalled:
                wake = min(wake, member.metadata_at + admission.fresh_for_ns(member) + 1)
    for round_ in state.rounds.values():
        if round_.state == RoundState.GRACE:
            wake = min(wake, round_.quorum_at + round_.window_ns)
        elif round_.state == RoundState.PULLING:
            wake = min(wake, round_.pull_until)
    return max(wake, core.now + 1)


def _disconnected(core: SyncerCore, event: Disconnected) -> None:
    membership.disconnected(core, event.connection)


def _records_came(core: SyncerCore, event: RecordsCame) -> None:
    arrivals.foreign_records(core, event.process, event.records)


def _handed(core: SyncerCore, event: Handed) -> None:
    updates.handed(core, event.connection, event.fragment, event.version)


def _settings_asked(core: SyncerCore, event: SettingsAsked) -> None:
    """Take or refuse a change; policy acts on waiting rounds at once, learners hear of theirs."""
    state = core.state
    try:
        state.book.apply(event.values, state.fixed, len(quorum.expected(state)))
    except ConfigError as error:
        core.record(Kind.SETTING_REFUSED, reason=str(error), detail={"values": dict(event.values), "who": event.who})
        return
    state.changed_seq = core.record(
        Kind.SETTING_CHANGED,
        setting=state.book.revision,
        round=state.next_t,
        detail={"values": dict(event.values), "who": event.who},
    )
    for round_ in state.rounds.values():
        rounds.renew_limits(core, round_)
    quorum.judge(core)
    for member in state.members.values():
        if member.connected:
            membership.send_settings(core, member)


def _fit_quorum(core: SyncerCore) -> None:
    """Going back brings back the quorum of then, but not learners that have been removed since."""
    there = len(quorum.expected(core.state))
    if there < core.state.book.policy.quorum:
        _settings_asked(core, SettingsAsked({"quorum": there}, "resume"))


def _stop_asked(core: SyncerCore, event: StopAsked) -> None:
    if not core.state.ending:
        _start_ending(core, event.reason)


_HANDLERS: dict[type, Any] = {
    Received: arrivals.received,
    Disconnected: _disconnected,
    RecordsCame: _records_came,
    MergeDone: merging.merge_done,
    CommitDone: merging.commit_done,
    Handed: _handed,
    SettingsAsked: _settings_asked,
    QuarantineAsked: quarantine.asked,
    AddAsked: rosters.add_asked,
    RemoveAsked: rosters.remove_asked,
    SnapshotAsked: snapshots.asked,
    SnapshotWritten: snapshots.written,
    StopAsked: _stop_asked,
}
