"""Who takes part: joins, re-joins, losses, progress, and whether a quorum is possible (PROTOCOL section 10)."""

from __future__ import annotations

from workbench.protocol import admission, rounds, updates
from workbench.protocol.actions import Fail, Send
from workbench.protocol.clocks import ema
from workbench.protocol.messages import CONTROL, Beat, End, Join, Metadata, Welcome
from workbench.protocol.records import Kind, label_of, process_of
from workbench.protocol.settings import SECOND, learner_values
from workbench.protocol.syncer_core import SyncerCore
from workbench.protocol.syncer_state import NEVER, UNSET, Member, PullState, Round, RoundState

RECENT_STEPS = 50


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
    known = member is not None and message.process_number == member.process_number
    if known and member.connected and member.connection == connection:
        _welcome(core, member, rejoin=message.has_state, origin=state.seq)
        return
    if member is None:
        member = _new_member(core, message)
    elif member.connected:
        lose(core, member, "socket" if known else "superseded")
    if not known:
        _fresh_process(core, member)
    member.process_number = message.process_number
    member.connection = connection
    _admit(core, member, rejoin=known or message.has_state)
    _progress(core, member, message)
    member.metadata_at = core.now
    updates.seen(core, member)
    _start_rounds(core)


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


def _new_member(core: SyncerCore, message: Join) -> Member:
    fragments = core.state.fixed.fragments
    member = Member(
        learner=message.learner,
        process_number=message.process_number,
        incarnation=0,
        connection=UNSET,
        connected=False,
        base=[-1] * fragments,
        c_steps=[0] * fragments,
        last_merged=[-1] * fragments,
        last_merged_step=[-1] * fragments,
        blocked=[False] * fragments,
        anew=[0] * fragments,
    )
    core.state.members[message.learner] = member
    core.state.members = dict(sorted(core.state.members.items()))
    return member


def _fresh_process(core: SyncerCore, member: Member) -> None:
    """Another process: nothing that the former one held or sent is in it."""
    fragments = core.state.fixed.fragments
    member.healed = False
    member.stalled = False
    member.base = [-1] * fragments
    member.c_steps = [0] * fragments
    member.blocked = [False] * fragments
    member.anew = [0] * fragments
    member.recent = []
    member.median_ns = 0
    member.step_ema = member.pull_ema = member.send_ema = -1.0


def _admit(core: SyncerCore, member: Member, rejoin: bool) -> None:
    """Hand out the next incarnation, recorded first."""
    member.incarnation += 1
    member.connected = True
    member.last_heard = core.now
    member.metadata_at = NEVER
    member.pending = {}
    member.sent = {}
    member.in_hand = UNSET
    origin = core.record(
        Kind.LEARNER_JOINED,
        peer=process_of(member.learner),
        value=float(member.process_number),
        version=member.incarnation,
        step=member.last_step + 1,
        reason="rejoin" if rejoin else "process",
    )
    _welcome(core, member, rejoin, origin)
    judge_quorum(core)


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
        ),
    )


def _start_rounds(core: SyncerCore) -> None:
    """Rounds begin when all have joined; the time limit is looked at in `expire`."""
    state = core.state
    if not state.began and len(state.members) >= state.fixed.learners:
        begin(core, "all")


def begin(core: SyncerCore, reason: str) -> None:
    """Rounds may open from now on."""
    core.state.began = True
    core.record(Kind.ROUNDS_BEGAN, value=float(len(core.state.members)), reason=reason)


def progressed(core: SyncerCore, member: Member, message: Metadata) -> None:
    """METADATA of the present incarnation: progress, health, and what the learner lacks."""
    if _foreign(core, message):
        return
    healed_before = member.healed
    new_step = message.n > member.n or member.metadata_at == NEVER
    _progress(core, member, message)
    member.metadata_at = core.now
    member.stalled = False
    if new_step and message.step_ns > 0:
        member.recent.append(message.step_ns)
        if len(member.recent) > RECENT_STEPS:
            del member.recent[0]
        member.median_ns = sorted(member.recent)[len(member.recent) // 2]
        member.step_ema = ema(member.step_ema, message.step_ns)
    if member.healed and not healed_before:
        core.record(
            Kind.LEARNER_HEALED,
            cause=(process_of(member.learner), message.origin),
            peer=process_of(member.learner),
            step=message.n,
        )
    updates.seen(core, member)


def _progress(core: SyncerCore, member: Member, message: Join | Metadata) -> None:
    member.n = message.n
    member.g = message.g
    member.c_steps = message.c_steps
    member.base = message.base
    member.healed = message.healed
    member.blocked = [False] * len(member.base)


def lose(core: SyncerCore, member: Member, reason: str) -> None:
    """Declare a learner gone."""
    core.record(
        Kind.LEARNER_LOST,
        peer=process_of(member.learner),
        version=member.incarnation,
        step=member.n,
        reason=reason,
    )
    member.connected = False
    member.pending = {}
    member.sent = {}
    member.in_hand = UNSET
    rounds.lost(core, member.learner)
    judge_quorum(core)


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


def expire(core: SyncerCore) -> None:
    """Heartbeats, stalls, pulls that nothing answers, and the start limit: what has run out by now."""
    state, now = core.state, core.now
    for member in state.members.values():
        if not member.connected:
            continue
        if now - member.last_heard >= state.fixed.heartbeat_limit_ns:
            lose(core, member, "heartbeat")
        elif member.healed and not member.stalled and now - member.metadata_at > admission.fresh_for_ns(member):
            member.stalled = True
            core.record(
                Kind.LEARNER_STALLED, peer=process_of(member.learner), value=(now - member.metadata_at) / SECOND
            )
    for round_ in list(state.rounds.values()):
        if round_.state == RoundState.READY and round_.stuck_since != UNSET:
            _break_silent(core, round_)
    if not state.began and state.start_until != UNSET and now >= state.start_until and state.members:
        begin(core, "start_limit")


def stuck_limit_ns(core: SyncerCore, member: Member) -> int:
    """How long a pull may stay unanswered while its round lacks a quorum before the connection counts as broken."""
    return max(2 * core.state.fixed.heartbeat_limit_ns, int(8 * member.pull_ema))


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
            lose(core, member, "unanswered")


def beat(core: SyncerCore) -> None:
    """Acknowledge records and say that the syncer lives."""
    state = core.state
    if core.now < state.next_beat:
        return
    state.next_beat = core.now + state.fixed.heartbeat_ns
    for member in state.members.values():
        if member.connected:
            core.send(member, Beat(member.incarnation, member.known_seq, state.closed_below, state.clock))


def judge_quorum(core: SyncerCore) -> None:
    """Say at once when fewer than K learners could ever become ready, and when that is over."""
    state = core.state
    possible, quorum = core.possible(), state.book.policy.quorum
    if not state.began or state.ending:
        return
    if len(possible) < quorum and not state.quorum_lost:
        state.quorum_lost = True
        present = {m.learner for m in possible}
        missing = [label_of(process_of(m)) for m in range(state.fixed.learners) if m not in present]
        core.record(Kind.QUORUM_LOST, value=float(len(possible)), steps=quorum, detail={"missing": missing})
    elif len(possible) >= quorum and state.quorum_lost:
        state.quorum_lost = False
        core.record(Kind.QUORUM_REGAINED, value=float(len(possible)), steps=quorum)
