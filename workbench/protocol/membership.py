"""Who takes part: joins, re-joins, losses, progress, and whether a quorum is possible (PROTOCOL section 10)."""

from __future__ import annotations

from typing import Any

from workbench.protocol import averages, quorum, rounds, snapshots, state_transfers, updates
from workbench.protocol.actions import Fail, Send
from workbench.protocol.member_state import Member, new_member
from workbench.protocol.messages import CONTROL, Change, End, Join, Metadata, Welcome
from workbench.protocol.moments import UNSET
from workbench.protocol.records import Kind, label_of, process_of
from workbench.protocol.settings import learner_values
from workbench.protocol.syncer_core import SyncerCore


def joined(core: SyncerCore, connection: int, message: Join) -> None:
    """A process asks to take part; a zombie older than the present process is sent away."""
    state = core.state
    member = state.members.get(message.learner)
    if member is not None and message.process_number < max(member.process_number, member.ended + 1):
        farewell = End(-1, "superseded", 0, state.closed_below, state.clock)
        core.out.append(Send(connection, CONTROL, farewell))
        return
    if _foreign(core, message):
        return
    unwanted = state.ending or ("removed" if message.learner in state.removed else "")
    if unwanted:
        core.out.append(Send(connection, CONTROL, End(-1, unwanted, 0, state.closed_below, state.clock)))
        return
    if member is None:
        member = _new_member(core, message.learner)
    healed_before = member.healed
    if member.connected and member.connection == connection and member.process_number == message.process_number:
        member.last_heard = core.now
        _welcome(core, member, rejoin=message.has_state, origin=member.joined_seq)
    else:
        _take_in(core, connection, member, message)
    _progress(core, member, message)
    if member.source == "own" and member.healed and not healed_before:
        core.record(Kind.LEARNER_HEALED, peer=process_of(member.learner), step=message.n)
    updates.seen(core, member)
    start_rounds(core)


def _take_in(core: SyncerCore, connection: int, member: Member, message: Join) -> None:
    """A JOIN on another connection, or of another process: what was before it is over."""
    known = message.process_number == member.process_number
    if member.connected:
        lose(core, member, "socket" if known else "superseded")
    if not known:
        _fresh_process(core, member)
    member.process_number = message.process_number
    member.connection = connection
    _admit(core, member, known or message.has_state, message.identity, message)


def _foreign(core: SyncerCore, message: Join | Metadata) -> bool:
    """A learner that holds versions which this run has not made: the states do not belong together."""
    for p, base in enumerate(message.base):
        if base > core.state.versions[p]:
            core.out.append(
                Fail(
                    f"{label_of(process_of(message.learner))} holds version {base} of fragment {p}, the syncer "
                    f"{core.state.versions[p]}: a foreign or damaged state; start a new run, or resume from a snapshot"
                )
            )
            return True
    return False


def _new_member(core: SyncerCore, learner: int) -> Member:
    state = core.state
    member = state.members[learner] = new_member(learner, state.fixed.fragments)
    state.members = dict(sorted(state.members.items()))
    return member


def _fresh_process(core: SyncerCore, member: Member) -> None:
    """Another process: nothing that the former one held or sent is in it."""
    fragments = core.state.fixed.fragments
    member.healed = False
    member.stalled = False
    member.base = [-1] * fragments
    member.c_steps = [0] * fragments
    member.anew = [0] * fragments
    member.pull_ema = member.send_ema = -1.0
    averages.forget_steps(member)


def _admit(
    core: SyncerCore,
    member: Member,
    rejoin: bool,
    identity: dict[str, Any] | None = None,
    join: Join | None = None,
) -> None:
    """Hand out the next incarnation, recorded first; it is clean for nothing until its METADATA, or JOIN, has come."""
    member.incarnation += 1
    member.connected = True
    member.last_heard = member.metadata_at = core.now
    member.blocked = ["rejoined"] * core.state.fixed.fragments
    member.asked = {}
    member.pending = {}
    member.sent = {}
    member.in_hand = UNSET
    state_transfers.choose_source(core, member, join)
    member.joined_seq = core.record(
        Kind.LEARNER_JOINED,
        peer=process_of(member.learner),
        value=float(member.process_number),
        version=member.incarnation,
        step=member.last_step + 1,
        reason="restored" if member.source == "own" else "rejoin" if rejoin else "process",
        detail=dict(identity or {}),
    )
    _welcome(core, member, rejoin, member.joined_seq)
    quorum.judge(core)
    state_transfers.begin(core, member)


def _welcome(core: SyncerCore, member: Member, rejoin: bool, origin: int) -> None:
    state = core.state
    core.send(
        member,
        Welcome(
            member.incarnation,
            state.epoch,
            list(state.versions),
            state.closed_below,
            state.book.revision,
            learner_values(state.book.learner),
            member.last_step + 1,
            member.known_seq + 1,
            rejoin,
            member.known_seq,
            state.closed_below,
            origin,
            state.clock,
            member.source,
            state.resumed_from if member.source == "own" else state.snapshot_done,
        ),
    )


def send_settings(core: SyncerCore, member: Member) -> None:
    """The learner's settings of now; sent again to a learner whose METADATA shows an older revision."""
    state = core.state
    core.send(
        member,
        Change(
            member.incarnation,
            state.book.revision,
            learner_values(state.book.learner),
            member.known_seq,
            state.closed_below,
            state.changed_seq,
            state.clock,
        ),
    )


def start_rounds(core: SyncerCore) -> None:
    """Rounds begin when all have joined; the time limit is one of `deadlines`."""
    state = core.state
    if not state.began and state.members and all(m in state.members for m in quorum.expected(state)):
        begin(core, "all")


def begin(core: SyncerCore, reason: str) -> None:
    """Rounds may open from now on."""
    core.state.began = True
    core.state.short_since = UNSET
    core.record(Kind.ROUNDS_BEGAN, value=float(len(core.state.members)), reason=reason)
    quorum.judge(core)


def progressed(core: SyncerCore, member: Member, message: Metadata) -> None:
    """METADATA of the present incarnation: progress, health, and what the learner lacks."""
    if _foreign(core, message):
        return
    healed_before = member.healed
    if message.n > member.n and message.step_ns > 0:
        averages.sample_step(member, message.step_ns)
    _progress(core, member, message)
    if member.healed and not healed_before:
        core.record(
            Kind.LEARNER_HEALED,
            cause=(process_of(member.learner), message.origin),
            peer=process_of(member.learner),
            step=message.n,
        )
    updates.seen(core, member)
    if message.awaiting:
        state_transfers.still_waits(core, member)
    if message.revision < core.state.book.revision:
        send_settings(core, member)


def _progress(core: SyncerCore, member: Member, message: Join | Metadata) -> None:
    """What METADATA and JOIN say alike."""
    member.metadata_at = core.now
    member.stalled = False
    member.n = message.n
    member.g = message.g
    member.c_steps = message.c_steps
    member.base = message.base
    member.healed = message.healed
    member.blocked = [""] * len(member.base)


def lose(core: SyncerCore, member: Member, reason: str, who: str = "") -> None:
    """Declare a learner gone; ``who`` wanted that."""
    core.record(
        Kind.LEARNER_LOST,
        peer=process_of(member.learner),
        version=member.incarnation,
        step=member.n,
        reason=reason,
        detail={"who": who} if who else {},
    )
    member.connected = False
    member.pending = {}
    member.sent = {}
    member.in_hand = UNSET
    rounds.lost(core, member.learner)
    state_transfers.lost(core, member.learner)
    snapshots.lost(core, member.learner)
    quorum.judge(core)


def left(core: SyncerCore, member: Member) -> None:
    """A learner says that it leaves: told to by the end of the run, or by whoever started it; it does not come back."""
    if not core.state.ending:
        member.ended = max(member.ended, member.process_number)
    lose(core, member, "ended" if core.state.ending else "left")


def disconnected(core: SyncerCore, connection: int) -> None:
    """A socket closed."""
    for member in core.state.members.values():
        if member.connection == connection:
            if member.connected:
                lose(core, member, "socket")
            member.connection = UNSET


def process_ended(core: SyncerCore, learner: int, process_number: int) -> None:
    """The supervisor saw a process exit: what still comes from it is refused."""
    member = core.state.members.get(learner)
    if member is None:
        return
    member.ended = max(member.ended, process_number)
    if member.process_number == process_number and member.connected:
        lose(core, member, "exit")


def refused_message(core: SyncerCore, connection: int, learner: int) -> None:
    """A message of another incarnation: if it comes from a declared-lost process that lives, it re-joins."""
    member = core.state.members.get(learner)
    if member is None or member.connection != connection or member.connected or core.state.ending:
        return
    if member.process_number > member.ended:
        _admit(core, member, rejoin=True)
