"""UPDATEs and notices on their way: one re-send rule, one waiting version per fragment (PROTOCOL section 7)."""

from __future__ import annotations

from workbench.protocol import averages
from workbench.protocol.clocks import ema
from workbench.protocol.member_state import Member, Sent
from workbench.protocol.messages import Notice, Update
from workbench.protocol.moments import UNSET
from workbench.protocol.records import Kind, process_of
from workbench.protocol.settings import SECOND
from workbench.protocol.slots import TOPOLOGIES
from workbench.protocol.syncer_core import SyncerCore


def broadcast(core: SyncerCore, p: int, grace_ended_at: int) -> None:
    """The new version of ``p`` to every connected learner, merged or not."""
    state = core.state
    connected = [m.learner for m in state.members.values() if m.connected]
    state.sync_since[p] = grace_ended_at if connected else UNSET
    for learner in TOPOLOGIES["star"](p, connected):
        enqueue(core, state.members[learner], p)


def enqueue(core: SyncerCore, member: Member, p: int) -> None:
    """Let the current version of ``p`` wait for the learner; it replaces an older one that waits."""
    member.pending[p] = core.state.versions[p]
    pump(core, member)


def pump(core: SyncerCore, member: Member) -> None:
    """Hand the next waiting UPDATE to the transport, which takes one at a time."""
    if member.in_hand != UNSET or not member.pending or not member.connected:
        return
    state = core.state
    p = next(iter(member.pending))
    version = member.pending.pop(p)
    member.in_hand = p
    anew = member.anew[p]
    origin = core.record(
        Kind.UPDATE_SENT,
        peer=process_of(member.learner),
        fragment=p,
        version=version,
        round=state.version_rounds[p],
        value=1.0 if anew else 0.0,
    )
    core.send(
        member,
        Update(
            member.incarnation,
            p,
            version,
            state.version_rounds[p],
            member.last_merged[p],
            member.last_merged_step[p],
            anew,
            member.known_seq,
            state.closed_below,
            origin,
            state.clock,
        ),
        bulk=True,
    )


def handed(core: SyncerCore, connection: int, p: int, version: int) -> None:
    """The transport took an UPDATE; the first of a version ends the time that its round took to sync."""
    state = core.state
    for member in state.members.values():
        if member.connection == connection and member.connected and member.in_hand == p:
            member.in_hand = UNSET
            member.sent[p] = Sent(version, core.now)
            if version == state.versions[p] and state.sync_since[p] != UNSET:
                averages.sample_sync(state, core.now - state.sync_since[p])
                state.sync_since[p] = UNSET
            pump(core, member)
            return


def seen(core: SyncerCore, member: Member) -> None:
    """A METADATA came: what it shows has arrived, what it lacks and is not on its way is sent again."""
    state = core.state
    for p in list(member.sent):
        sent = member.sent[p]
        if member.base[p] >= sent.version and not member.anew[p]:
            member.send_ema = ema(member.send_ema, core.now - sent.at)
            del member.sent[p]
    for p, version in enumerate(state.versions):
        if (member.base[p] < version or member.anew[p]) and not _on_its_way(core, member, p, version):
            enqueue(core, member, p)


def _on_its_way(core: SyncerCore, member: Member, p: int, version: int) -> bool:
    if p in member.pending or member.in_hand == p:
        return True
    sent = member.sent.get(p)
    if sent is None or sent.version != version:
        return False
    patience = 2 * (member.send_ema if member.send_ema >= 0 else SECOND)
    return core.now - sent.at < patience


def notify(core: SyncerCore, t: int) -> None:
    """Tell every connected learner that a round was closed without an update."""
    state = core.state
    for member in state.members.values():
        if member.connected:
            core.send(member, Notice(member.incarnation, t, member.known_seq, state.closed_below, state.clock))
