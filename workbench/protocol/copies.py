"""A learner's state for a peer or for a snapshot: copied at a boundary, sent when that boundary is journalled.

PROTOCOL sections 6, 8, 11 and 13: the copy waits for its records, the learner does not.
"""

from __future__ import annotations

from typing import Any

import msgspec

from workbench.protocol import outbox
from workbench.protocol.actions import CopyState, Release
from workbench.protocol.events import StateCopied
from workbench.protocol.learner_core import LearnerCore
from workbench.protocol.learner_state import UNSET, CapturedCopy, Copy, CopyRequest, Cut, LearnerState
from workbench.protocol.messages import BULK, CONTROL, CopyAsked, Mark, Marker, StateCopy
from workbench.protocol.records import SYNCER, Kind, process_of

RESTORED_FIELDS = ("n", "g", "c_steps", "c_tokens", "base", "anew_seen", "total_tokens", "healed", "step_ns")
"""Counters of a learner that a snapshot keeps as they are."""


def copy_asked(core: LearnerCore, message: CopyAsked) -> None:
    """A peer's state is wanted: one request for each joiner, the newest."""
    core.state.wanted[message.joiner] = CopyRequest(message.number, message.stamp, (SYNCER, message.origin))


def marker_came(core: LearnerCore, message: Marker) -> None:
    """A snapshot has reached this learner on one channel; it is taken at the next boundary."""
    state = core.state
    cut = state.cut
    if cut is None or cut.snapshot != message.snapshot:
        if cut is not None and cut.snapshot > message.snapshot:
            return
        _give_up(core)
        cut = state.cut = Cut(message.snapshot, (SYNCER, message.origin), [False, False])
    cut.marked[message.channel] = True
    send_what_is_acknowledged(core)


def is_behind(state: LearnerState, channel: int) -> bool:
    """Whether what comes on a channel now may not act before the snapshot is taken."""
    return state.cut is not None and state.cut.marked[channel] and not state.cut.taken


def note_in_flight(state: LearnerState, fragment: int, version: int, round_: int) -> None:
    """An update on its way when the snapshot was taken: kept for whoever looks into it."""
    cut = state.cut
    if cut is not None and cut.taken and not cut.marked[BULK]:
        cut.in_flight.append([fragment, version, round_])


def serve(core: LearnerCore) -> None:
    """At a boundary, after the folds: copies for peers that may have them, and the state for a snapshot."""
    state = core.state
    if not state.welcomed:
        return
    for joiner in sorted(state.wanted):
        request = state.wanted[joiner]
        if state.healed and _has(state, request.stamp):
            del state.wanted[joiner]
            _copy_for_peer(core, joiner, request)
    if state.cut is not None and not state.cut.taken and any(state.cut.marked):
        _take(core, state.cut)


def _has(state: LearnerState, stamp: list[int]) -> bool:
    return all(base >= version for base, version in zip(state.base, stamp, strict=True))


def _copy_for_peer(core: LearnerCore, joiner: int, request: CopyRequest) -> None:
    """Record the boundary and have it copied; the record leaves at once, while the copy is made."""
    state = core.state
    seq = core.record(
        Kind.STATE_COPIED,
        cause=request.cause,
        peer=process_of(joiner),
        value=float(request.number),
        step=state.n,
        global_step=state.g,
        detail={"base": list(state.base)},
    )
    state.copies[request.number] = Copy(joiner, seq, state.n, list(state.base))
    core.out.append(CopyState(request.number, snapshot=False))
    core.send_heartbeat()


def _take(core: LearnerCore, cut: Cut) -> None:
    """Record the state, and put the learner's own MARKER behind all that it has sent."""
    state = core.state
    cut.taken = True
    seq = core.record(
        Kind.SNAPSHOT_RECORDED,
        cause=cut.cause,
        value=float(cut.snapshot),
        step=state.n,
        global_step=state.g,
        detail={"base": list(state.base)},
    )
    state.copies[-cut.snapshot] = Copy(UNSET, seq, state.n, list(state.base), facts_of(state))
    captured = sorted({(p, c.step) for p, held in state.captures.items() for c in held if c.sent})
    core.out.append(CopyState(-cut.snapshot, True, captured))
    for channel in (CONTROL, BULK):
        core.send(
            Mark(
                state.learner,
                state.incarnation,
                cut.snapshot,
                channel,
                seq,
                state.clock,
                outbox.take(state.outbox, channel),
            ),
            bulk=channel == BULK,
        )


def facts_of(state: LearnerState) -> dict[str, Any]:
    """What a snapshot keeps of a learner beside its arrays."""
    sent = {str(p): [c for c in copies if c.sent] for p, copies in sorted(state.captures.items())}
    facts = {name: getattr(state, name) for name in RESTORED_FIELDS}
    plain: dict[str, Any] = msgspec.to_builtins({**facts, "captures": sent, "process_number": state.process_number})
    return plain


def restore(state: LearnerState, facts: dict[str, Any], snapshot: int) -> None:
    """Give a new process the counters that a snapshot has of its learner."""
    for name in RESTORED_FIELDS:
        value = facts[name]
        setattr(state, name, list(value) if isinstance(value, list) else value)
    state.g_seen = state.g
    captures = msgspec.convert(facts["captures"], dict[str, list[CapturedCopy]])
    state.captures = {int(p): copies for p, copies in captures.items()}
    state.restored = snapshot


def release_what_is_behind(core: LearnerCore, given_up: bool = False) -> bool:
    """Once the state is taken, what came behind the MARKER counts like anything else; whether something did."""
    state = core.state
    cut = state.cut
    if cut is None or not (cut.taken or given_up):
        return False
    behind = [update for update in state.inbox.values() if update.behind]
    for update in behind:
        update.behind = False
    state.g_seen = max(state.g_seen, cut.g_behind)
    cut.g_behind = 0
    if state.asked_behind is not None:
        state.asked, state.asked_revision = state.asked_behind
        state.asked_behind = None
        return True
    return bool(behind)


def state_copied(core: LearnerCore, event: StateCopied) -> None:
    """The copy lies under its handle: record its digest; it leaves when its boundary is in the journal."""
    state = core.state
    copy = state.copies.get(event.number)
    if copy is None or not state.welcomed:
        core.out.append(Release(event.handle))
        state.copies.pop(event.number, None)
        return
    copy.digest, copy.nbytes, copy.handle = event.digest, event.nbytes, event.handle
    copy.origin = core.record(
        Kind.STATE_LEFT,
        peer=process_of(copy.joiner) if copy.joiner >= 0 else SYNCER,
        value=float(abs(event.number)),
        version=copy.seq,
        digest=event.digest,
        step=copy.step,
        detail={"bytes": event.nbytes},
    )
    send_what_is_acknowledged(core)


def send_what_is_acknowledged(core: LearnerCore) -> None:
    """Send copies whose boundary is in the journal, those of snapshots when both MARKERs have come."""
    state = core.state
    for number, copy in list(state.copies.items()):
        if copy.handle == UNSET or state.outbox.acked < copy.seq:
            continue
        if number < 0 and (state.cut is None or not all(state.cut.marked)):
            continue
        del state.copies[number]
        _send(core, number, copy)
    if state.cut is not None and state.cut.taken and all(state.cut.marked) and -state.cut.snapshot not in state.copies:
        state.cut = None


def _send(core: LearnerCore, number: int, copy: Copy) -> None:
    state = core.state
    if number < 0 and state.cut is not None:
        copy.facts["in_flight"] = state.cut.in_flight
    core.send(
        StateCopy(
            state.learner,
            state.incarnation,
            abs(number),
            number < 0,
            copy.seq,
            copy.step,
            copy.base,
            copy.digest,
            copy.nbytes,
            copy.origin,
            state.clock,
            outbox.take(state.outbox, BULK),
            copy.facts,
            copy.handle,
        ),
        bulk=True,
    )


def forget_all(core: LearnerCore) -> None:
    """Another incarnation: whoever wanted a copy asks again."""
    state = core.state
    for copy in state.copies.values():
        if copy.handle >= 0:
            core.out.append(Release(copy.handle))
    state.copies, state.wanted = {}, {}
    _give_up(core)


def _give_up(core: LearnerCore) -> None:
    """The snapshot that had reached this learner will not be."""
    cut = core.state.cut
    if cut is None:
        return
    copy = core.state.copies.pop(-cut.snapshot, None)
    if copy is not None and copy.handle >= 0:
        core.out.append(Release(copy.handle))
    release_what_is_behind(core, given_up=True)
    core.state.cut = None
