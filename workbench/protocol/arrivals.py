"""What comes from learners: records first, then progress, fragments and refusals (PROTOCOL sections 5 and 6)."""

from __future__ import annotations

from workbench.protocol import admission, fitting, guards, membership, rounds, snapshots, state_transfers
from workbench.protocol.actions import Release
from workbench.protocol.clocks import ema, entry
from workbench.protocol.events import Received
from workbench.protocol.member_state import Member
from workbench.protocol.messages import (
    Beat,
    Fragment,
    Heartbeat,
    Join,
    LearnerMessage,
    Mark,
    Metadata,
    Refused,
    StateCopy,
    StateUnusable,
)
from workbench.protocol.moments import UNSET
from workbench.protocol.records import SYNCER, Kind, Record, process_of
from workbench.protocol.round_state import Contribution, PullState, Round, RoundState
from workbench.protocol.syncer_core import SyncerCore

ASK_AGAIN_NS = 500_000_000


def received(core: SyncerCore, event: Received) -> None:
    """Take a learner's message: refuse it whole if it is of another life, else journal and act."""
    message = event.message
    if fitting.refused(core, event.connection, message):
        return
    if isinstance(message, Join):
        member = core.state.members.get(message.learner)
        if member is not None and member.ended < message.process_number == member.process_number:
            take_records(core, member, message.records)
        if member is None or message.process_number >= max(member.process_number, member.ended + 1):
            core.hear(message.clock)
        membership.joined(core, event.connection, message)
        return
    if not isinstance(message, Metadata | Fragment | Refused | Heartbeat | StateCopy | Mark | StateUnusable):
        return
    member = core.state.members.get(message.learner)
    if not _is_present(member, event.connection, message):
        _refuse(core, event.connection, message)
        return
    assert member is not None
    member.last_heard = core.now
    take_records(core, member, message.records)
    if entry(message.clock, process_of(member.learner)) > member.known_seq:
        _incomplete(core, member, message)
        return
    core.hear(message.clock)
    if core.state.snapshot is not None and isinstance(message, Metadata | Fragment):
        snapshots.note_in_flight(core, member, message)
    if isinstance(message, Metadata):
        membership.progressed(core, member, message)
        if message.leaving:
            membership.left(core, member)
    elif isinstance(message, Fragment):
        _fragment(core, member, message, event)
    elif isinstance(message, Refused):
        _refusal(core, member, message)
    elif isinstance(message, StateCopy):
        (snapshots.part_came if message.snapshot else state_transfers.copy_came)(core, member, message)
    elif isinstance(message, Mark):
        snapshots.mark_came(core, member, message)
    elif isinstance(message, StateUnusable):
        state_transfers.unusable(core, member, message)


def _is_present(member: Member | None, connection: int, message: LearnerMessage) -> bool:
    return (
        member is not None
        and member.connected
        and member.connection == connection
        and not isinstance(message, Join)
        and member.incarnation == message.incarnation
    )


def _refuse(core: SyncerCore, connection: int, message: LearnerMessage) -> None:
    """A message of another incarnation or connection counts for nothing, its records neither."""
    if isinstance(message, Fragment):
        member = core.state.members.get(message.learner)
        gone = member is not None and member.connection == connection and member.incarnation == message.incarnation
        _drop(core, message, "gone" if gone else "incarnation", refused=True)
    elif isinstance(message, StateCopy):
        core.out.append(Release(message.handle))
    membership.refused_message(core, connection, message.learner)


def _incomplete(core: SyncerCore, member: Member, message: LearnerMessage) -> None:
    """Records before this message were lost: it may have no effect; ask for them, once per half second."""
    if isinstance(message, Fragment):
        _drop(core, message, "records")
        guards.after_drop(core, member, core.state.rounds.get(message.round), message.fragment, "records")
    elif isinstance(message, StateCopy):
        core.out.append(Release(message.handle))
    if core.now - member.asked_again_at >= ASK_AGAIN_NS:
        member.asked_again_at = core.now
        state = core.state
        core.send(member, Beat(member.incarnation, member.known_seq, state.closed_below, state.clock, True))


def take_records(core: SyncerCore, member: Member, records: list[Record]) -> None:
    """Journal what is new, in order and without gaps; duplicates are known by their seq."""
    new = []
    known = member.known_seq
    for record in records:
        if record.seq == known + 1:
            new.append(record)
            known = record.seq
    if not new:
        return
    member.known_seq = known
    core.append(new)
    for record in new:
        if record.kind == Kind.STEP_ENDED:
            member.last_step = max(member.last_step, record.step)
        elif record.kind == Kind.UPDATE_FOLDED:
            folded_anew(member, record)
        elif record.kind == Kind.STATE_ADOPTED and record.reason != "initial":
            state_transfers.adopted(core, member)
        elif record.kind == Kind.STATE_COPIED:
            state_transfers.copied(core, member)


def folded_anew(member: Member, record: Record) -> None:
    """A fold clears what was asked anew, if it is a fold of that or of a later asking."""
    if record.detail.get("anew", 0) >= member.anew[record.fragment]:
        member.anew[record.fragment] = 0


def take_foreign_records(core: SyncerCore, process: int, records: list[Record]) -> list[Record]:
    """Journal what is new of the supervisor's or the evaluator's records, after the end of the run too."""
    known = core.state.known_seq.get(process, 0)
    new = []
    for record in records:
        if record.seq == known + 1:
            new.append(record)
            known = record.seq
            core.hear(record.clock)
    core.state.known_seq[process] = known
    if new:
        core.append(new)
    return new


def foreign_records(core: SyncerCore, process: int, records: list[Record]) -> None:
    """Journal records of the supervisor or the evaluator; an exit that the supervisor saw is a loss."""
    for record in take_foreign_records(core, process, records):
        if record.kind == Kind.PROCESS_ENDED and record.peer != SYNCER:
            membership.process_ended(core, record.peer - process_of(0), int(record.value))


def _why_unusable(core: SyncerCore, member: Member, round_: Round | None, event: Received) -> str:
    """The reason for which a fragment cannot enter a merge, empty if it can."""
    message = event.message
    assert isinstance(message, Fragment)
    if round_ is None or round_.p != message.fragment:
        return "late"
    pull = round_.pulls.get(member.learner)
    if member.learner in round_.here or member.learner in round_.guarded:
        return "duplicate"
    if round_.state >= RoundState.MERGING:
        return "pull_limit" if pull is not None and pull.state == PullState.LIMIT else "late"
    if not event.fits or message.codec != round_.settings.codec:
        return "shape"
    if member.quarantined:
        return "quarantined"
    if not admission.base_fits(core.state, member, message.fragment, message.base_version):
        return "stale"
    if core.state.book.policy.guard_nonfinite and not event.finite:
        return "nonfinite"
    return ""


def _fragment(core: SyncerCore, member: Member, message: Fragment, event: Received) -> None:
    round_ = core.state.rounds.get(message.round)
    _sample_pull(core, member, message.round)
    reason = _why_unusable(core, member, round_, event)
    if reason:
        _drop(core, message, reason)
        guards.after_drop(core, member, round_, message.fragment, reason)
        return
    assert round_ is not None
    _note_arrival(core, message, Kind.FRAGMENT_ARRIVED, message.codec)
    rounds.keep(
        core,
        round_,
        member.learner,
        Contribution(
            message.base_version,
            message.step,
            message.steps,
            message.tokens,
            message.digest,
            message.handle,
            event.norm,
        ),
    )


def _refusal(core: SyncerCore, member: Member, message: Refused) -> None:
    round_ = core.state.rounds.get(message.round)
    _sample_pull(core, member, message.round)
    core.record(
        Kind.REFUSAL_ARRIVED,
        cause=(process_of(member.learner), message.origin),
        peer=process_of(member.learner),
        round=message.round,
        fragment=message.fragment,
        reason=message.reason,
    )
    member.blocked[message.fragment] = message.reason
    pull = round_.pulls.get(member.learner) if round_ is not None else None
    if round_ is not None and pull is not None and pull.state == PullState.OUTSTANDING:
        pull.state = PullState.REFUSED
        round_.left_out[member.learner] = message.reason


def _sample_pull(core: SyncerCore, member: Member, t: int) -> None:
    """Every answer is a sample, that to a round which is closed too: else who is always late would always be."""
    sent_at = member.asked.pop(t, UNSET)
    if sent_at != UNSET:
        member.unanswered = 0
        member.pull_ema = ema(member.pull_ema, core.now - sent_at)


def _drop(core: SyncerCore, message: Fragment, reason: str, refused: bool = False) -> None:
    _note_arrival(core, message, Kind.FRAGMENT_DROPPED, reason, refused)
    if message.handle >= 0:
        core.out.append(Release(message.handle))


def _note_arrival(core: SyncerCore, message: Fragment, kind: Kind, reason: str, refused: bool = False) -> None:
    """Record a fragment; one of another life names no cause, since its number may be that of another record."""
    member = core.state.members.get(message.learner)
    in_journal = not refused and member is not None and message.origin <= member.known_seq
    core.record(
        kind,
        cause=(process_of(message.learner), message.origin) if in_journal else None,
        peer=process_of(message.learner),
        round=message.round,
        fragment=message.fragment,
        base_version=message.base_version,
        step=message.step,
        steps=message.steps,
        tokens=message.tokens,
        reason=reason,
        digest=message.digest,
        detail={
            "bytes": message.nbytes,
            "captured_ns": message.captured_ns,
            "codec": message.codec,
            "incarnation": message.incarnation,
        },
    )
