"""The learner machine: (input, now) in, actions out; no socket, thread, clock or array of its own."""

from __future__ import annotations

from typing import Any

import msgspec

from workbench.protocol import folding, lead, outbox, pulls
from workbench.protocol.actions import Action, Adopt, Connect, Leave, Publish, StartStep
from workbench.protocol.events import (
    Adopted,
    Captured,
    Connected,
    Disconnected,
    FaultActed,
    LearnerInput,
    Received,
    StepEnded,
)
from workbench.protocol.learner_core import LearnerCore
from workbench.protocol.learner_state import UNSET, LearnerState, Published, shift
from workbench.protocol.messages import Beat, Change, End, Notice, Pull, SyncerMessage, Update, Welcome
from workbench.protocol.records import SYNCER, Kind
from workbench.protocol.settings import SECOND, LearnerSettings
from workbench.protocol.slots import LOCAL_WORK
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
            shift(state, now - state.wake_at)
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
    if state.waiting_since != UNSET:
        core.send_metadata()
    else:
        core.send_heartbeat()


def _received(core: LearnerCore, event: Received) -> None:
    state = core.state
    message: Any = event.message
    if event.connection != state.connection:
        return
    if isinstance(message, Welcome):
        _welcomed(core, message)
        return
    if isinstance(message, End) and message.incarnation == -1:
        _leave(core, message.reason)
        return
    if not state.welcomed or message.incarnation != state.incarnation:
        return
    _note(core, message)
    _MESSAGES[type(message)](core, message)
    if state.waiting_since != UNSET:
        _finish_boundary(core)


def _note(core: LearnerCore, message: SyncerMessage) -> None:
    """What every message of the syncer carries."""
    state = core.state
    state.last_heard = core.now
    if not isinstance(message, Update):
        core.hear(message.clock)
    outbox.acknowledge(state.outbox, message.acked, core.now)
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
    if message.revision != state.revision:
        state.asked = msgspec.convert(message.settings, LearnerSettings)
        state.asked_revision = message.revision
    if not state.has_state:
        _begin_life(core, message)
        return
    outbox.acknowledge(state.outbox, message.acked, core.now)
    outbox.rewind(state.outbox)
    if state.waiting_since != UNSET:
        _finish_boundary(core)


def _begin_life(core: LearnerCore, message: Welcome) -> None:
    """Take the numbers of own steps and records from where the journal ends, then the state itself."""
    state = core.state
    state.n = message.first_step - 1
    state.seq = message.first_seq - 1
    state.outbox.acked = state.seq
    outbox.rewind(state.outbox)
    state.has_state = True
    state.published.n = state.n
    state.adopting = (SYNCER, message.origin)
    core.out.append(Adopt("initial"))


def _adopted(core: LearnerCore, event: Adopted) -> None:
    """The state is there: the first boundary of this process."""
    state = core.state
    if state.adopting is None:
        return
    cause, state.adopting = state.adopting, None
    core.out.append(Publish(-1))
    core.record(Kind.STATE_ADOPTED, cause=cause, reason="initial", step=state.n, digest=event.digest)
    _finish_boundary(core)


def _step_ended(core: LearnerCore, event: StepEnded) -> None:
    """The boundary, in this order: counters, host copy, METADATA, settings, acknowledgements, folds, lead."""
    state = core.state
    used = state.g
    state.stepping = False
    state.n += 1
    state.g += 1
    state.step_ns = core.now - event.start_ns
    state.c_steps = [c + 1 for c in state.c_steps]
    state.c_tokens = [c + event.tokens for c in state.c_tokens]
    state.total_tokens += event.tokens
    if not state.healed and min(state.base) >= 0:
        state.healed = True
    core.record(
        Kind.STEP_ENDED,
        step=state.n,
        global_step=used,
        steps=1,
        tokens=event.tokens,
        value=event.loss,
        detail={
            "batch": event.batch,
            "accumulation": event.accumulation,
            "start_ns": event.start_ns,
            "end_ns": core.now,
            "injected_ns": event.injected_ns,
            "waited_ns": state.waited_ns,
        },
    )
    state.waited_ns = 0
    state.published = Published(state.n, list(state.c_steps), list(state.c_tokens), state.total_tokens)
    core.out.append(Publish(-1))
    core.send_metadata(leaving=bool(state.ending))
    _finish_boundary(core)


def _finish_boundary(core: LearnerCore) -> None:
    """What follows METADATA; looked at again whenever something comes while the learner waits."""
    state = core.state
    if state.ending:
        _leave(core, state.ending)
        return
    if state.asked is not None:
        state.settings, state.revision = state.asked, state.asked_revision
        state.asked = None
        core.record(
            Kind.SETTING_APPLIED,
            setting=state.revision,
            step=state.n,
            detail={"values": msgspec.structs.asdict(state.settings)},
        )
    folding.acknowledge_contributions(core)
    folding.fold_due(core)
    if lead.must_wait(state):
        if state.waiting_since == UNSET:
            state.waiting_since = core.now
        return
    _start_step(core)


def _start_step(core: LearnerCore) -> None:
    state = core.state
    if state.waiting_since != UNSET:
        state.waited_ns += core.now - state.waiting_since
        state.waiting_since = UNSET
    batch, accumulation = LOCAL_WORK["fixed"](state.settings, state.n + 1)
    state.stepping = True
    core.out.append(StartStep(state.n + 1, state.g, batch, accumulation, state.settings.rate_scale))


def _changed(core: LearnerCore, message: Change) -> None:
    if message.revision > max(core.state.revision, core.state.asked_revision):
        core.state.asked = msgspec.convert(message.settings, LearnerSettings)
        core.state.asked_revision = message.revision


def _noticed(core: LearnerCore, message: Notice) -> None:
    if message.round >= core.state.closed_below:
        core.state.closed.append(message.round)


def _beat(core: LearnerCore, message: Beat) -> None:
    """What `_note` takes from it; records that the syncer lacks go out again."""
    if message.send_again:
        outbox.rewind(core.state.outbox)


def _ended(core: LearnerCore, message: End) -> None:
    """Leave at once when nothing is in progress, else at the end of the step."""
    core.state.ending = message.reason
    if not core.state.stepping:
        core.send_metadata(leaving=True)
        _leave(core, message.reason)


def _leave(core: LearnerCore, reason: str) -> None:
    core.state.left = True
    core.out.append(Leave(reason))


def _fault_acted(core: LearnerCore, event: FaultActed) -> None:
    core.record(Kind.FAULT_APPLIED, reason=event.reason, fragment=event.fragment, detail=event.detail)


_MESSAGES: dict[type, Any] = {
    Pull: pulls.pulled,
    Update: folding.update_came,
    Notice: _noticed,
    Beat: _beat,
    Change: _changed,
    End: _ended,
}

_HANDLERS: dict[type, Any] = {
    Connected: _connected,
    Disconnected: _disconnected,
    Received: _received,
    Adopted: _adopted,
    StepEnded: _step_ended,
    Captured: pulls.captured,
    FaultActed: _fault_acted,
}
