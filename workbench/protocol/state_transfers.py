"""A joiner's state from a peer: whom the syncer asks, what it passes on, and what follows when nobody answers.

PROTOCOL section 11.  The syncer asks on the joiner's behalf: it knows who is healed, its versions are the stamp, and
no snapshot starts while a transfer runs.
"""

from __future__ import annotations

from workbench.protocol.actions import Release
from workbench.protocol.member_state import Member
from workbench.protocol.messages import Beat, Begin, CopyAsked, Join, PeerState, StateCopy, StateUnusable
from workbench.protocol.moments import UNSET
from workbench.protocol.records import Kind, process_of
from workbench.protocol.syncer_core import SyncerCore
from workbench.protocol.under_way import Transfer


def choose_source(core: SyncerCore, member: Member, message: Join | None) -> None:
    """Decide what a process begins with, before its WELCOME; without a JOIN it is one that was declared lost."""
    state = core.state
    waits = member.source == "peer"
    member.source = "initial"
    if message is not None:
        if message.restored >= 0 and not message.has_state:
            if message.restored == state.resumed_from and message.n == member.last_step:
                member.source = "own"
                return
            _forget_restored(message)
        waits = not message.has_state or message.awaiting
    if waits and state.fixed.recovery == "peer" and state.merges > 0:
        member.source = "peer" if _donors(core, member.learner, []) else _without_peer(core, member.learner)


def _forget_restored(message: Join) -> None:
    """Counters of a snapshot that this run has gone beyond."""
    count = len(message.base)
    message.base, message.c_steps, message.c_tokens = [-1] * count, [0] * count, [0] * count
    message.g, message.healed = 0, False


def _without_peer(core: SyncerCore, learner: int) -> str:
    return "snapshot" if learner in core.state.snapshot_steps else "initial"


def begin(core: SyncerCore, member: Member) -> None:
    """Ask a peer, after the joiner's WELCOME."""
    if member.source == "peer":
        transfer = core.state.transfers[member.learner] = Transfer(member.learner, member.incarnation)
        _ask_next(core, transfer)


def _donors(core: SyncerCore, joiner: int, tried: list[int]) -> list[Member]:
    """Peers that may be asked, the best first: those that need no further UPDATE, then the fastest."""
    state = core.state
    able = [
        m
        for m in state.members.values()
        if m.connected and m.healed and not m.stalled and not m.quarantined and m.learner not in (joiner, *tried)
    ]

    def rank(member: Member) -> tuple[bool, float, int]:
        behind = any(base < version for base, version in zip(member.base, state.versions, strict=True))
        return behind, member.step_ema, member.learner

    return sorted(able, key=rank)


def _ask_next(core: SyncerCore, transfer: Transfer) -> None:
    """Ask the next peer; while a snapshot is taken, wait until it is, not until it lies on disk."""
    state = core.state
    _let_go(core, transfer)
    transfer.donor, transfer.relayed, transfer.asked_at = UNSET, False, core.now
    if state.snapshot is not None and not state.snapshot.writing:
        return
    donors = _donors(core, transfer.joiner, transfer.tried)
    if not donors:
        _give_up(core, transfer)
        return
    donor = donors[0]
    state.transfer_serial += 1
    transfer.number, transfer.donor, transfer.stamp = state.transfer_serial, donor.learner, list(state.versions)
    transfer.tried.append(donor.learner)
    origin = core.record(
        Kind.STATE_ASKED,
        peer=process_of(donor.learner),
        value=float(transfer.number),
        detail={"joiner": process_of(transfer.joiner), "stamp": list(transfer.stamp)},
    )
    core.send(
        donor,
        CopyAsked(
            donor.incarnation,
            transfer.number,
            transfer.joiner,
            list(transfer.stamp),
            donor.known_seq,
            state.closed_below,
            origin,
            state.clock,
        ),
    )


def _give_up(core: SyncerCore, transfer: Transfer) -> None:
    """No peer is left: the joiner begins with what else there is."""
    state = core.state
    del state.transfers[transfer.joiner]
    member = state.members[transfer.joiner]
    member.source = _without_peer(core, transfer.joiner)
    member.begin_seq = core.record(
        Kind.STATE_UNAVAILABLE,
        peer=process_of(transfer.joiner),
        value=float(transfer.number),
        reason=member.source,
    )
    tell_to_begin(core, member)


def still_waits(core: SyncerCore, member: Member) -> None:
    """A learner says that it has not begun: if no state is on its way to it, what it was told was lost."""
    if member.learner not in core.state.transfers and member.source != "peer":
        tell_to_begin(core, member)


def tell_to_begin(core: SyncerCore, member: Member) -> None:
    """Let a joiner begin without a peer's state."""
    state = core.state
    core.send(
        member,
        Begin(
            member.incarnation,
            member.source,
            state.snapshot_done,
            member.known_seq,
            state.closed_below,
            max(member.begin_seq, member.joined_seq),
            state.clock,
        ),
    )


def copied(core: SyncerCore, member: Member) -> None:
    """The boundary of a copy is in the journal: its donor, which may stand idle, hears so at once."""
    state = core.state
    if member.connected:
        core.send(member, Beat(member.incarnation, member.known_seq, state.closed_below, state.clock))


def copy_came(core: SyncerCore, member: Member, message: StateCopy) -> None:
    """Pass a peer's state on to its joiner, if that still waits for it; one that did not come whole is no state."""
    state = core.state
    transfer = next(
        (t for t in state.transfers.values() if t.number == message.number and t.donor == member.learner), None
    )
    if transfer is None or transfer.relayed:
        core.out.append(Release(message.handle))
        return
    if message.handle < 0:
        _ask_next(core, transfer)
        return
    joiner = state.members[transfer.joiner]
    transfer.relayed, transfer.handle, transfer.asked_at = True, message.handle, core.now
    origin = core.record(
        Kind.STATE_SENT,
        cause=(process_of(member.learner), message.origin),
        peer=process_of(joiner.learner),
        value=float(message.number),
        version=message.copied,
        digest=message.digest,
        detail={"donor": process_of(member.learner), "bytes": message.nbytes},
    )
    core.send(
        joiner,
        PeerState(
            joiner.incarnation,
            message.number,
            process_of(member.learner),
            message.copied,
            message.digest,
            message.nbytes,
            joiner.known_seq,
            state.closed_below,
            origin,
            state.clock,
            message.handle,
        ),
        bulk=True,
    )


def unusable(core: SyncerCore, member: Member, message: StateUnusable) -> None:
    """What came to a joiner was not whole: the next peer."""
    transfer = core.state.transfers.get(member.learner)
    if transfer is not None and transfer.number == message.number:
        _ask_next(core, transfer)


def ended(core: SyncerCore, joiner: int) -> None:
    """A joiner has its state, or is gone."""
    transfer = core.state.transfers.pop(joiner, None)
    if transfer is not None:
        _let_go(core, transfer)


def adopted(core: SyncerCore, member: Member) -> None:
    """The journal shows that a joiner has begun with what it was given."""
    member.source = "initial"
    ended(core, member.learner)


def lost(core: SyncerCore, learner: int) -> None:
    """A learner is gone: it waits for nothing, and whoever waits for its state asks the next."""
    ended(core, learner)
    for transfer in list(core.state.transfers.values()):
        if transfer.donor == learner and not transfer.relayed:
            _ask_next(core, transfer)


def snapshot_over(core: SyncerCore) -> None:
    """Joiners that had to wait while a snapshot was taken get their state now."""
    for transfer in list(core.state.transfers.values()):
        if transfer.donor == UNSET:
            _ask_next(core, transfer)


def expire(core: SyncerCore) -> None:
    """A peer that does not answer, or a joiner that does not take what it was sent: the next peer."""
    for transfer in list(core.state.transfers.values()):
        if transfer.donor != UNSET and core.now - transfer.asked_at >= core.state.fixed.state_limit_ns:
            _ask_next(core, transfer)


def wake_at(core: SyncerCore) -> int:
    """When the next transfer expires."""
    limit = core.state.fixed.state_limit_ns
    return min((t.asked_at + limit for t in core.state.transfers.values() if t.donor != UNSET), default=2**62)


def _let_go(core: SyncerCore, transfer: Transfer) -> None:
    if transfer.handle != UNSET:
        core.out.append(Release(transfer.handle))
        transfer.handle = UNSET
