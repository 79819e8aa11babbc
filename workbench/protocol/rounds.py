"""One round (t, p) until enough is here: OPEN, READY, GRACE, PULLING (PROTOCOL section 2).

What follows, MERGING, COMMITTING and closed, is in `merging`.
"""

from __future__ import annotations

from workbench.protocol import admission, averages, merging
from workbench.protocol.member_state import Member
from workbench.protocol.messages import Pull
from workbench.protocol.moments import UNSET
from workbench.protocol.records import Kind, process_of
from workbench.protocol.round_state import Contribution, PullRecord, PullState, Round, RoundState
from workbench.protocol.syncer_core import SyncerCore

ASKED_KEPT = 256
"""Unanswered PULLs of a learner of which a late answer still tells how long it took."""


def candidates(core: SyncerCore, round_: Round) -> tuple[int, list[Member], list[Member]]:
    """Count toward K, clean learners not yet asked, and those of them that are admitted.

    A ready learner counts if the rule would admit it (``paced`` may not), else a round could end its grace with
    nobody to ask.  A learner whose fragment is here counts; one that was pulled in its present incarnation and has not
    sent does not, until its fragment comes.
    """
    state = core.state
    p, t, now = round_.p, round_.t, core.now
    eligible = admission.ELIGIBILITY[state.book.policy.eligibility]
    count = len(round_.here) + len(round_.guarded)
    clean: list[Member] = []
    admitted: list[Member] = []
    for member in state.members.values():
        if member.learner in round_.here or not admission.is_clean(state, member, p, now):
            continue
        if was_asked(round_, member):
            continue
        clean.append(member)
        if eligible(state, member, round_):
            admitted.append(member)
            count += member.g >= t
    return count, clean, admitted


def was_asked(round_: Round, member: Member) -> bool:
    """Whether a learner gets no PULL of this round any more.

    One PULL per incarnation; but one that was refused, or whose answer was dropped, has been answered:
    after newer METADATA (before that the learner is not clean) it may be asked again, else a round that
    needs it would wait for ever.
    """
    if member.learner in round_.guarded:
        return True
    pull = round_.pulls.get(member.learner)
    return (
        pull is not None
        and pull.incarnation == member.incarnation
        and pull.state not in (PullState.REFUSED, PullState.DROPPED)
    )


def any_ready(core: SyncerCore, round_: Round) -> int:
    """The first ready learner of an open round, UNSET if there is none."""
    for member in core.state.members.values():
        if member.g >= round_.t and admission.is_clean(core.state, member, round_.p, core.now):
            return member.learner
    return next(iter(round_.here), UNSET)


def advance(core: SyncerCore, round_: Round) -> bool:
    """Make the next transition that is due; whether there was one."""
    step = _STEPS.get(RoundState(round_.state))
    return step(core, round_) if step else False


def _from_open(core: SyncerCore, round_: Round) -> bool:
    learner = any_ready(core, round_)
    if learner == UNSET:
        return False
    round_.state = RoundState.READY
    if round_.first_ready_at == UNSET:
        round_.first_ready_at = core.now
        core.record(Kind.ROUND_READY, round=round_.t, fragment=round_.p, peer=process_of(learner))
    return True


def _from_ready(core: SyncerCore, round_: Round) -> bool:
    count, _, _ = candidates(core, round_)
    if count < core.state.book.policy.quorum:
        return False
    round_.state = RoundState.GRACE
    round_.quorum_at = core.now
    averages.sample_quorum(core.state, core.now - round_.first_ready_at)
    policy = core.state.book.policy
    round_.window_ns = admission.GRACE[policy.grace](core.state)
    core.record(
        Kind.QUORUM_REACHED,
        round=round_.t,
        fragment=round_.p,
        value=-1.0 if round_.window_ns >= admission.FOREVER else round_.window_ns / 1e9,
    )
    return True


def _from_grace(core: SyncerCore, round_: Round) -> bool:
    count, clean, admitted = candidates(core, round_)
    if count < core.state.book.policy.quorum:
        _back_to_ready(core, round_)
        return True
    over = core.now >= round_.quorum_at + round_.window_ns
    if len(admitted) < len(clean) and not over:
        return False
    _pull(core, round_, admitted, over and len(admitted) < len(clean))
    return True


def _pull(core: SyncerCore, round_: Round, admitted: list[Member], over: bool) -> None:
    """Grace has ended: ask all that are admitted."""
    state = core.state
    round_.state = RoundState.PULLING
    round_.grace_ended_at = core.now
    asked = {m.learner for m in admitted}
    answered = {m: why for m, why in round_.left_out.items() if m in round_.pulls and m not in round_.here}
    left_out = {
        m.learner: admission.why_not(state, m, round_, core.now)
        for m in state.members.values()
        if m.connected
        and m.healed
        and m.learner not in asked
        and m.learner not in round_.here
        and not was_asked(round_, m)
    }
    round_.left_out = left_out | {m: why for m, why in answered.items() if m not in asked}
    core.record(
        Kind.GRACE_ENDED,
        round=round_.t,
        fragment=round_.p,
        value=(core.now - round_.quorum_at) / 1e9,
        reason="over" if over else "all_admitted",
        detail={"admitted": sorted(asked), "left_out": dict(round_.left_out)},
    )
    for member in admitted:
        _send_pull(core, round_, member)
    renew_limits(core, round_)


def _send_pull(core: SyncerCore, round_: Round, member: Member) -> None:
    base = member.base[round_.p]
    origin = core.record(
        Kind.PULL_SENT,
        peer=process_of(member.learner),
        round=round_.t,
        fragment=round_.p,
        base_version=base,
        reason=round_.settings.codec,
    )
    round_.pulls[member.learner] = PullRecord(member.incarnation, core.now, base)
    note_asked(member, round_.t, core.now)
    state = core.state
    core.send(
        member,
        Pull(
            member.incarnation,
            round_.t,
            round_.p,
            base,
            round_.settings.codec,
            member.known_seq,
            state.closed_below,
            origin,
            state.clock,
        ),
    )


def note_asked(member: Member, t: int, now: int) -> None:
    """Remember when a learner was asked, until it answers, beyond the end of the round."""
    member.asked[t] = now
    if len(member.asked) > ASKED_KEPT:
        del member.asked[next(iter(member.asked))]


def is_outstanding(round_: Round, member: Member) -> bool:
    """Whether a learner was pulled in its present incarnation and has not answered."""
    pull = round_.pulls.get(member.learner)
    return (
        pull is not None
        and pull.state == PullState.OUTSTANDING
        and member.connected
        and pull.incarnation == member.incarnation
    )


def _from_pulling(core: SyncerCore, round_: Round) -> bool:
    outstanding = [m for m in core.state.members.values() if is_outstanding(round_, m)]
    if outstanding and core.now < round_.pull_until:
        return False
    if len(round_.here) + len(round_.guarded) < core.state.book.policy.quorum:
        _back_to_ready(core, round_)
        return True
    for member in outstanding:
        round_.pulls[member.learner].state = PullState.LIMIT
        round_.left_out[member.learner] = "pull_limit"
        member.blocked[round_.p] = "pull_limit"
    merging.merge(core, round_)
    return True


def _back_to_ready(core: SyncerCore, round_: Round) -> None:
    """Fewer than K: grace runs anew after the next quorum; PULLs that nobody answers count from now."""
    round_.state = RoundState.READY
    round_.quorum_at = UNSET
    round_.stuck_since = core.now


def renew_limits(core: SyncerCore, round_: Round) -> None:
    """Policy acts at once: the grace window and the pull limit of a round that waits."""
    state = core.state
    if round_.state == RoundState.GRACE:
        round_.window_ns = admission.GRACE[state.book.policy.grace](state)
    elif round_.state == RoundState.PULLING:
        outstanding = [m for m in state.members.values() if is_outstanding(round_, m)]
        round_.pull_until = round_.grace_ended_at + admission.pull_limit_ns(state, outstanding)


def lost(core: SyncerCore, learner: int) -> None:
    """A learner is gone: it answers none of its pulls; what it has sent stays."""
    for round_ in core.state.rounds.values():
        pull = round_.pulls.get(learner)
        if pull is not None and pull.state == PullState.OUTSTANDING:
            pull.state = PullState.GONE
            round_.left_out[learner] = "gone"


def keep(core: SyncerCore, round_: Round, learner: int, contribution: Contribution) -> None:
    """A fragment is here."""
    round_.here[learner] = contribution
    pull = round_.pulls.get(learner)
    if pull is not None:
        pull.state = PullState.ARRIVED


_STEPS = {
    RoundState.OPEN: _from_open,
    RoundState.READY: _from_ready,
    RoundState.GRACE: _from_grace,
    RoundState.PULLING: _from_pulling,
}
