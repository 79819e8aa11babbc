"""What runs out: heartbeats, METADATA, pulls that nothing answers, the start limit; and the syncer's own heartbeat."""

from __future__ import annotations

from workbench.protocol import admission, membership, quorum, snapshots, state_transfers
from workbench.protocol.member_state import Member
from workbench.protocol.messages import Beat
from workbench.protocol.moments import UNSET
from workbench.protocol.records import Kind, process_of
from workbench.protocol.round_state import PullState, Round, RoundState
from workbench.protocol.settings import SECOND
from workbench.protocol.syncer_core import SyncerCore

DOUBLINGS_MAX = 10


def expire(core: SyncerCore) -> None:
    """Heartbeats, stalls, pulls that nothing answers, and the start limit: what has run out by now."""
    state, now = core.state, core.now
    for member in state.members.values():
        if not member.connected:
            continue
        if now - member.last_heard >= state.fixed.heartbeat_limit_ns:
            membership.lose(core, member, "heartbeat")
        elif member.healed and not member.stalled and now - member.metadata_at > admission.fresh_for_ns(member):
            member.stalled = True
            core.record(
                Kind.LEARNER_STALLED, peer=process_of(member.learner), value=(now - member.metadata_at) / SECOND
            )
    for round_ in list(state.rounds.values()):
        if round_.state == RoundState.READY and round_.stuck_since != UNSET:
            _break_silent(core, round_)
    state_transfers.expire(core)
    snapshots.expire(core)
    if not state.began and state.start_until != UNSET and now >= state.start_until and state.members:
        membership.begin(core, "start_limit")
    quorum.expect(core)


def stuck_limit_ns(core: SyncerCore, member: Member) -> int:
    """How long a pull may stay unanswered while its round lacks a quorum before the connection counts as broken.

    Twice as long after every time that nothing came, until something does: a link on which a fragment takes longer
    than this is slow, not broken, and another incarnation only sends the fragment again.
    """
    least = max(2 * core.state.fixed.heartbeat_limit_ns, int(8 * member.pull_ema))
    return least << min(member.unanswered, DOUBLINGS_MAX)


def _break_silent(core: SyncerCore, round_: Round) -> None:
    """A PULL or its answer was lost on a connection that otherwise lives: only a new one may ask again."""
    for learner, pull in round_.pulls.items():
        member = core.state.members[learner]
        if (
            member.connected
            and pull.incarnation == member.incarnation
            and pull.state == PullState.OUTSTANDING
            and core.now - round_.stuck_since >= stuck_limit_ns(core, member)
        ):
            member.unanswered += 1
            membership.lose(core, member, "unanswered")


def beat(core: SyncerCore) -> None:
    """Acknowledge records and say that the syncer lives."""
    state = core.state
    if core.now < state.next_beat:
        return
    state.next_beat = core.now + state.fixed.heartbeat_ns
    for member in state.members.values():
        if member.connected:
            core.send(member, Beat(member.incarnation, member.known_seq, state.closed_below, state.clock))
