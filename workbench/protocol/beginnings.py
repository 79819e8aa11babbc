"""How a learner's life begins: the first weights, a peer's state, what a snapshot has of it (PROTOCOL 11, 13)."""

from __future__ import annotations

from workbench.protocol import boundary, outbox
from workbench.protocol.actions import Adopt, Publish, Release
from workbench.protocol.events import Adopted
from workbench.protocol.learner_core import LearnerCore
from workbench.protocol.learner_state import UNSET, LearnerState, Published
from workbench.protocol.messages import CONTROL, Begin, PeerState, StateUnusable, Welcome
from workbench.protocol.outbox import take
from workbench.protocol.records import SYNCER, Kind


def begin_life(core: LearnerCore, message: Welcome) -> None:
    """Take the numbers of own steps and records from where the journal ends, then the state itself."""
    state = core.state
    own = message.source == "own" and state.restored == message.snapshot
    if not own:
        _forget_counters(state)
        state.n = message.first_step - 1
    state.seq = message.first_seq - 1
    state.outbox.acked = state.seq
    outbox.rewind(state.outbox)
    state.has_state = True
    state.published = Published(state.n, list(state.c_steps), list(state.c_tokens), state.total_tokens)
    state.awaiting = message.source in ("peer", "snapshot")
    source = "own" if own else "initial"
    if message.source == "snapshot":
        state.offered = _as_begin(message)
    _adopt(core, Adopt(source, snapshot=state.restored if own else UNSET), (SYNCER, message.origin))


def _forget_counters(state: LearnerState) -> None:
    """A new process holds nothing that may be merged."""
    count = state.fixed.fragments
    state.restored = UNSET
    state.g = state.total_tokens = 0
    state.g_seen = max((update.round for update in state.inbox.values()), default=0)  # those overtook the WELCOME
    state.base = [-1] * count
    state.c_steps, state.c_tokens, state.anew_seen = [0] * count, [0] * count, [0] * count
    state.captures = {}
    state.healed = False


def _as_begin(message: Welcome) -> Begin:
    m = message
    return Begin(m.incarnation, m.source, m.snapshot, m.acked, m.closed_below, m.origin, m.clock)


def welcomed_again(core: LearnerCore, message: Welcome) -> None:
    """A learner that waits for a state hears what it may expect now."""
    if core.state.awaiting:
        _forget_offer(core)
        if message.source != "peer":
            begin(core, _as_begin(message))


def begin(core: LearnerCore, message: Begin) -> None:
    """No peer is left to ask: take the moments of a snapshot, or begin with fresh ones."""
    state = core.state
    if not state.awaiting:
        return
    if state.adopting is not None:
        _offer(core, message)
    elif message.source == "snapshot":
        _adopt(core, Adopt("snapshot", snapshot=message.snapshot), (SYNCER, message.origin))
    else:
        state.awaiting = False
        boundary.finish(core)


def peer_state_came(core: LearnerCore, message: PeerState) -> None:
    """Of a peer's state take the moments, and the fragments that the syncer has not sent yet."""
    state = core.state
    if not state.awaiting:
        core.out.append(Release(message.handle))
        return
    if state.adopting is not None:
        _offer(core, message)
        return
    fragments = [p for p, base in enumerate(state.base) if base < 0]
    state.adopting_from = (message.donor, message.copied)
    _adopt(core, Adopt("peer", message.handle, fragments, message.number, message.digest), (SYNCER, message.origin))


def _offer(core: LearnerCore, message: PeerState | Begin) -> None:
    """Keep it until the adoption that is under way is over; the newest counts."""
    _forget_offer(core)
    core.state.offered = message


def _forget_offer(core: LearnerCore) -> None:
    offered, core.state.offered = core.state.offered, None
    if isinstance(offered, PeerState):
        core.out.append(Release(offered.handle))


def _take_offer(core: LearnerCore) -> None:
    offered, core.state.offered = core.state.offered, None
    if isinstance(offered, PeerState):
        peer_state_came(core, offered)
    elif offered is not None:
        begin(core, offered)


def _adopt(core: LearnerCore, order: Adopt, cause: tuple[int, int]) -> None:
    core.state.adopting = order
    core.state.adopting_cause = cause
    core.out.append(order)


def adopted(core: LearnerCore, event: Adopted) -> None:
    """A state is there: record it; the first boundary of this process, or another look at it."""
    state = core.state
    order, cause = state.adopting, state.adopting_cause
    if order is None:
        return
    state.adopting = state.adopting_cause = None
    if order.handle >= 0:
        core.out.append(Release(order.handle))
    if event.whole:
        core.out.append(Publish(-1))
        _RECORDS[order.source](core, order, cause, event.digest)
    elif order.source == "peer":
        s = state
        core.send(StateUnusable(s.learner, s.incarnation, order.snapshot, s.clock, take(s.outbox, CONTROL)))
    if order.source == "snapshot" or (order.source == "peer" and event.whole):
        state.awaiting = False
    _take_offer(core)
    if not state.stepping:
        boundary.finish(core)


def _initial(core: LearnerCore, order: Adopt, cause: tuple[int, int] | None, digest: int) -> None:
    core.record(Kind.STATE_ADOPTED, cause=cause, reason="initial", step=core.state.n, digest=digest)


def _peer(core: LearnerCore, order: Adopt, cause: tuple[int, int] | None, digest: int) -> None:
    state = core.state
    donor, copied = state.adopting_from
    core.record(
        Kind.STATE_ADOPTED,
        cause=cause,
        reason="peer",
        peer=donor,
        version=copied,
        step=state.n,
        digest=digest,
        tokens=sum(state.c_tokens[p] for p in order.fragments),
        detail={"fragments": list(order.fragments)},
    )
    for p in order.fragments:
        state.c_steps[p] = state.c_tokens[p] = 0
    state.published = Published(state.n, list(state.c_steps), list(state.c_tokens), state.total_tokens)


def _snapshot(core: LearnerCore, order: Adopt, cause: tuple[int, int] | None, digest: int) -> None:
    core.record(
        Kind.STATE_ADOPTED,
        cause=cause,
        reason="snapshot",
        step=core.state.n,
        digest=digest,
        value=float(order.snapshot),
        detail={"fragments": []},
    )


def _own(core: LearnerCore, order: Adopt, cause: tuple[int, int] | None, digest: int) -> None:
    state = core.state
    state.restored = UNSET
    core.record(Kind.RESTORED, cause=cause, step=state.n, digest=digest, value=float(order.snapshot))
    core.send_metadata()


_RECORDS = {"initial": _initial, "peer": _peer, "snapshot": _snapshot, "own": _own}
