"""The learner machine: (input, now) in, actions out; no socket, thread, clock or array of its own."""

from __future__ import annotations

from typing import Any

import msgspec

from workbench.protocol import beginnings, boundary, copies, folding, outbox, pulls
from workbench.protocol.actions import Action, Connect, Release
from workbench.protocol.events import (
    Adopted,
    Captured,
    Connected,
    Disconnected,
    FaultActed,
    LearnerInput,
    LeaveAsked,
    Received,
    StateCopied,
    StepEnded,
)
from workbench.protocol.learner_core import LearnerCore
from workbench.protocol.learner_state import UNSET, LearnerState, shift
from workbench.protocol.messages import (
    CONTROL,
    Beat,
    Begin,
    Change,
    CopyAsked,
    End,
    Marker,
    Notice,
    PeerState,
    Pull,
    SyncerMessage,
    Update,
    Welcome,
)
from workbench.protocol.records import Kind
from workbench.protocol.settings import SECOND, LearnerSettings
from workbench.protocol.syncer_core import LATE_WAKE_NS

JOIN_AGAIN_NS = SECOND
ACK_PATIENCE_NS = SECOND


class LearnerMachine:
    """The learner's protocol.

    Parameters
    ----------
    state : LearnerState
        From `learner_state.new_state`.
    """

    def __init__(self, state: LearnerState) -> None:
        self.core = LearnerCore(state)

    @property
    def state(self) -> LearnerState:
        """What the machine knows."""
        return self.core.state

    @property
    def wake_at(self) -> int:
        """When the machine wants `Woken` at the latest [ns]."""
        return self.core.state.wake_at

    def start(self, now: int) -> list[Action]:
        """First actions of a process: reach the syncer."""
        core = self._begin(now)
        core.state.last_heard = now
        core.state.next_beat = now + core.state.fixed.heartbeat_ns
        core.state.join_again_at = now + JOIN_AGAIN_NS
        core.out.append(Connect())
        return self._settle()

    def handle(self, now: int, event: LearnerInput) -> list[Action]:
        """Take one input at time ``now`` [ns] and return what is to be done."""
        core = self._begin(now)
        state = core.state
        if state.left:
            return []
        if state.wake_at != UNSET and now > state.wake_at + LATE_WAKE_NS:
            shift(state, now - state.wake_at, now - state.fixed.heartbeat_limit_ns + LATE_WAKE_NS)
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(core, event)
        return self._settle()

    def _begin(self, now: int) -> LearnerCore:
        self.core.now = now
        self.core.out = []
        return self.core

    def _settle(self) -> list[Action]:
        core = self.core
        _keep_alive(core)
        state = core.state
        wake = state.next_beat
        if state.join_again_at != UNSET:
            wake = min(wake, state.join_again_at)
        state.wake_at = max(wake, core.now + 1)
        return core.out


def _connected(core: LearnerCore, event: Connected) -> None:
    state = core.state
    state.connection = event.connection
    state.welcomed = False
    _take_early(core)
    state.last_heard = core.now
    state.join_again_at = core.now + JOIN_AGAIN_NS
    core.send_join()


def _disconnected(core: LearnerCore, event: Disconnected) -> None:
    """The syncer's end is gone: try again, and train on meanwhile."""
    state = core.state
    if event.connection == state.connection:
        state.connection = UNSET
        state.welcomed = False
        state.join_again_at = core.now + JOIN_AGAIN_NS


def _keep_alive(core: LearnerCore) -> None:
    """Joins until welcomed, heartbeats afterwards, another connection when the syncer is silent."""
    state, now = core.state, core.now
    if state.left:
        return
    if state.join_again_at != UNSET and now >= state.join_again_at:
        state.join_again_at = now + JOIN_AGAIN_NS
        if state.connection == UNSET or now - state.last_heard >= state.fixed.heartbeat_limit_ns:
            state.connection = UNSET
            core.out.append(Connect())
        else:
            core.send_join()
    if now < state.next_beat:
        return
    state.next_beat = now + state.fixed.heartbeat_ns
    if not state.welcomed:
        return
    if now - state.last_heard >= state.fixed.heartbeat_limit_ns:
        state.welcomed = False
        state.connection = UNSET
        state.join_again_at = now + JOIN_AGAIN_NS
        core.out.append(Connect())
        return
    outbox.rewind_when_silent(state.outbox, now, ACK_PATIENCE_NS)
    if state.waiting_since != UNSET or state.awaiting:
        core.send_metadata()
    else:
        core.send_heartbeat()


def _received(core: LearnerCore, event: Received) -> None:
    state = core.state
    message: Any = event.message
    if event.connection != state.connection:
        _let_go(core, message)
        return
    if isinstance(message, Welcome):
        _welcomed(core, message)
        return
    if isinstance(message, End) and message.incarnation == -1:
        boundary.leave(core, message.reason)
        return
    if not state.welcomed or message.incarnation != state.incarnation:
        _of_another_life(core, message)
        return
    _note(core, message)
    _MESSAGES[type(message)](core, message)
    if (state.waiting_since != UNSET or state.awaiting) and not state.left:
        boundary.finish(core)


def _of_another_life(core: LearnerCore, message: SyncerMessage) -> None:
    """Let it go; but an UPDATE of the next incarnation has overtaken its WELCOME on the other channel and waits."""
    if not isinstance(message, Update) or message.incarnation <= core.state.incarnation:
        _let_go(core, message)
        return
    early = core.state.early
    if message.fragment in early:
        _let_go(core, early.pop(message.fragment))
    early[message.fragment] = message


def _take_early(core: LearnerCore) -> None:
    """Updates that came before the WELCOME of their incarnation."""
    early, core.state.early = core.state.early, {}
    for message in early.values():
        if core.state.welcomed and message.incarnation == core.state.incarnation:
            folding.update_came(core, message)
        else:
            _let_go(core, message)


def _let_go(core: LearnerCore, message: SyncerMessage) -> None:
    """A message of another connection or incarnation counts for nothing; nor is its payload kept."""
    if isinstance(message, Update | PeerState) and message.handle >= 0:
        core.out.append(Release(message.handle))


def _note(core: LearnerCore, message: SyncerMessage) -> None:
    """What every message of the syncer carries."""
    state = core.state
    state.last_heard = core.now
    if not isinstance(message, Update):
        core.hear(message.clock)
    outbox.acknowledge(state.outbox, message.acked, core.now)
    if state.copies:
        copies.send_what_is_acknowledged(core)
    if message.closed_below > state.closed_below:
        state.closed_below = message.closed_below
        if state.closed:
            state.closed = [t for t in state.closed if t >= state.closed_below]


def _welcomed(core: LearnerCore, message: Welcome) -> None:
    """Take the incarnation; a process without state begins with the run's first weights."""
    state = core.state
    if message.incarnation <= state.incarnation:
        return
    core.hear(message.clock)
    state.last_heard = core.now
    state.incarnation = message.incarnation
    state.epoch = message.epoch
    state.welcomed = True
    state.join_again_at = UNSET
    state.closed_below = message.closed_below
    state.closed = []
    copies.forget_all(core)
    if message.revision != state.revision:
        state.asked = msgspec.convert(message.settings, LearnerSettings)
        state.asked_revision = message.revision
    _take_early(core)
    if not state.has_state:
        beginnings.begin_life(core, message)
        return
    outbox.acknowledge(state.outbox, message.acked, core.now)
    outbox.rewind(state.outbox)
    beginnings.welcomed_again(core, message)
    if state.waiting_since != UNSET or state.awaiting:
        boundary.finish(core)


def _changed(core: LearnerCore, message: Change) -> None:
    state = core.state
    if message.revision <= max(state.revision, state.asked_revision):
        return
    settings = msgspec.convert(message.settings, LearnerSettings)
    if copies.is_behind(state, CONTROL):
        state.asked_behind = (settings, message.revision)
    else:
        state.asked, state.asked_revision = settings, message.revision


def _noticed(core: LearnerCore, message: Notice) -> None:
    if message.round >= core.state.closed_below:
        core.state.closed.append(message.round)


def _beat(core: LearnerCore, message: Beat) -> None:
    """What `_note` takes from it; records that the syncer lacks go out again."""
    if message.send_again:
        outbox.rewind(core.state.outbox)


def _ended(core: LearnerCore, message: End) -> None:
    _end(core, message.reason)


def _leave_asked(core: LearnerCore, event: LeaveAsked) -> None:
    _end(core, event.reason)


def _end(core: LearnerCore, reason: str) -> None:
    """Leave at once when nothing is in progress, else at the end of the step."""
    core.state.ending = reason
    if not core.state.stepping:
        core.send_metadata(leaving=True)
        boundary.leave(core, reason)


def _fault_acted(core: LearnerCore, event: FaultActed) -> None:
    """Record it; a process that has no state yet has no record numbers either, and nothing that a fault can change."""
    if not core.state.has_state:
        return
    core.record(Kind.FAULT_APPLIED, reason=event.reason, fragment=event.fragment, detail=event.detail)


_MESSAGES: dict[type, Any] = {
    Pull: pulls.pulled,
    Update: folding.update_came,
    Notice: _noticed,
    Beat: _beat,
    Change: _changed,
    CopyAsked: copies.copy_asked,
    PeerState: beginnings.peer_state_came,
    Begin: beginnings.begin,
    Marker: copies.marker_came,
    End: _ended,
}

_HANDLERS: dict[type, Any] = {
    Connected: _connected,
    Disconnected: _disconnected,
    Received: _received,
    Adopted: beginnings.adopted,
    StepEnded: boundary.step_ended,
    Captured: pulls.captured,
    StateCopied: copies.state_copied,
    FaultActed: _fault_acted,
    LeaveAsked: _leave_asked,
}
