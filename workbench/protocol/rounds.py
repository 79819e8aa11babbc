"""One round (t, p): OPEN, READY, GRACE, PULLING, MERGING, COMMITTING, closed (PROTOCOL section 2)."""

from __future__ import annotations

from workbench.algorithms.weights import WEIGHTS
from workbench.protocol import admission, averages, pacer, starvation, updates
from workbench.protocol.actions import Commit, Merge, Release
from workbench.protocol.events import CommitDone, MergeDone
from workbench.protocol.messages import Pull
from workbench.protocol.records import Kind, process_of
from workbench.protocol.syncer_core import SyncerCore
from workbench.protocol.syncer_state import (
    UNSET,
    Contribution,
    Member,
    PullRecord,
    PullState,
    Round,
    RoundState,
)


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
    round_.stuck_since = UNSET
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
        round_.state = RoundState.READY
        round_.quorum_at = UNSET
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
    round_.left_out = {
        m.learner: admission.why_not(state, m, round_, core.now)
        for m in state.members.values()
        if m.connected and m.healed and m.learner not in asked and m.learner not in round_.here
        and not was_asked(round_, m)
    }
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
    outstanding = [m for m in state.members.values() if is_outstanding(round_, m)]
    round_.pull_until = core.now + admission.pull_limit_ns(state, outstanding)


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
        round_.state = RoundState.READY
        round_.quorum_at = UNSET
        round_.stuck_since = core.now
        return True
    for member in outstanding:
        round_.pulls[member.learner].state = PullState.LIMIT
        round_.left_out[member.learner] = "pull_limit"
        member.blocked[round_.p] = True
    _merge(core, round_)
    return True


def _merge(core: SyncerCore, round_: Round) -> None:
    """Enough is here: weigh it and have it merged, or skip the round if it weighs nothing."""
    state = core.state
    version = state.versions[round_.p]
    weigh = WEIGHTS[round_.settings.weights]
    learners = sorted(round_.here)
    used = [round_.here[m] for m in learners]
    weights = [weigh(c.steps, c.tokens, version - c.base_version) for c in used]
    if not learners or sum(weights) <= 0.0:
        skip(core, round_, "weights_zero" if learners else "nonfinite")
        return
    round_.state = RoundState.MERGING
    round_.merge_at = core.now
    round_.merging = learners
    settings = {
        "merge": round_.settings.merge,
        "outer": round_.settings.outer,
        "outer_rate": round_.settings.outer_rate,
        "outer_momentum": round_.settings.outer_momentum,
        "anchor": state.fixed.anchor,
        "weights": weights,
    }
    core.out.append(
        Merge(
            round_.t,
            round_.p,
            version + 1,
            learners,
            [c.handle for c in used],
            weights,
            [c.base_version for c in used],
            settings,
            round_.fresh_outer,
        )
    )


def merge_done(core: SyncerCore, done: MergeDone) -> None:
    """The arithmetic is through: journal the merge, then have its slot made the current one."""
    round_ = core.state.rounds.get(done.round)
    if round_ is None or round_.state != RoundState.MERGING:
        return
    if not done.finite:
        skip(core, round_, "nonfinite")
        return
    round_.state = RoundState.COMMITTING
    version = core.state.versions[round_.p] + 1
    used = [round_.here[m] for m in round_.merging]
    weigh = WEIGHTS[round_.settings.weights]
    core.record(
        Kind.MERGED,
        round=round_.t,
        fragment=round_.p,
        version=version,
        base_version=version - 1,
        tokens=sum(c.tokens for c in used),
        steps=sum(c.steps for c in used),
        digest=done.digest,
        setting=round_.revision,
        reason=round_.settings.merge,
        detail={
            "learners": list(round_.merging),
            "steps_captured": [c.step for c in used],
            "c_steps": [c.steps for c in used],
            "c_tokens": [c.tokens for c in used],
            "weights": [weigh(c.steps, c.tokens, version - 1 - c.base_version) for c in used],
            "base_versions": [c.base_version for c in used],
            "norms": done.norms,
            "cosines": done.cosines,
            "digests": done.digests,
            "norm": done.norm,
            "outer_digest": done.outer_digest,
            "weights_rule": round_.settings.weights,
            "fresh_outer": round_.fresh_outer,
            "outer": round_.settings.outer,
            "outer_rate": round_.settings.outer_rate,
            "outer_momentum": round_.settings.outer_momentum,
            "first_ready_ns": round_.first_ready_at,
            "quorum_ns": round_.quorum_at,
            "grace_ns": round_.grace_ended_at,
            "pull_ns": round_.merge_at,
            "merge_ns": core.now,
        },
    )
    core.out.append(Commit(round_.t, round_.p, version))


def commit_done(core: SyncerCore, done: CommitDone) -> None:
    """The merged version is the current one: close the round and tell every connected learner."""
    state = core.state
    round_ = state.rounds.get(done.round)
    if round_ is None or round_.state != RoundState.COMMITTING:
        return
    p = round_.p
    state.versions[p] = done.version
    state.version_rounds[p] = round_.t
    state.outer_revision[p] = round_.revision
    state.merged_at[p] = core.now
    state.merges += 1
    for learner in round_.merging:
        member = state.members[learner]
        member.last_merged[p] = done.version
        member.last_merged_step[p] = round_.here[learner].step
    core.record(Kind.MERGE_COMMITTED, round=round_.t, fragment=p, version=done.version)
    grace_ended_at = round_.grace_ended_at
    starvation.count(core, round_)
    _close(core, round_)
    updates.broadcast(core, p, grace_ended_at)


def skip(core: SyncerCore, round_: Round, reason: str) -> None:
    """Close a round without a merge; its learners are told."""
    core.record(Kind.ROUND_SKIPPED, round=round_.t, fragment=round_.p, reason=reason, steps=1)
    starvation.count(core, round_)
    _close(core, round_)
    updates.notify(core, round_.t)


def abort(core: SyncerCore, round_: Round, reason: str) -> None:
    """Give a round up."""
    core.record(Kind.ROUND_ABORTED, round=round_.t, fragment=round_.p, reason=reason)
    _close(core, round_)


def _close(core: SyncerCore, round_: Round) -> None:
    for contribution in round_.here.values():
        if contribution.handle >= 0:
            core.out.append(Release(contribution.handle))
    del core.state.rounds[round_.t]
    pacer.renew_closed_below(core.state)


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
