"""From contributions to a committed version, or to a round that is closed without one (PROTOCOL section 2)."""

from __future__ import annotations

from typing import Any

from workbench.algorithms.weights import WEIGHTS
from workbench.protocol import guards, pacer, starvation, updates
from workbench.protocol.actions import Commit, Merge, Release
from workbench.protocol.events import CommitDone, MergeDone
from workbench.protocol.records import Kind
from workbench.protocol.round_state import Contribution, Round, RoundState
from workbench.protocol.syncer_core import SyncerCore


def merge(core: SyncerCore, round_: Round) -> None:
    """Enough is here: have what no guard refuses merged."""
    guards.refuse_norms(core, round_)
    _order(core, round_)


def _order(core: SyncerCore, round_: Round) -> None:
    """Weigh what is here and have it merged, or skip the round if it weighs nothing."""
    state = core.state
    version = state.versions[round_.p]
    weigh = WEIGHTS[round_.settings.weights]
    learners = sorted(round_.here)
    used = [round_.here[m] for m in learners]
    weights = [weigh(c.steps, c.tokens, version - c.base_version) for c in used]
    if not learners or sum(weights) <= 0.0:
        refused = [why for why in round_.left_out.values() if why in guards.REFUSED]
        skip(core, round_, "weights_zero" if learners else (refused or ["nonfinite"])[-1])
        return
    if round_.state != RoundState.MERGING:
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
    if guards.refuse_opposed(core, round_, done):
        _order(core, round_)
        return
    if not done.finite:
        skip(core, round_, "nonfinite")
        return
    round_.state = RoundState.COMMITTING
    version = core.state.versions[round_.p] + 1
    used = [round_.here[m] for m in round_.merging]
    flagged = guards.count_merge(
        core.state.members, round_.p, round_.merging, [c.steps for c in used], done.norms, done.cosines
    )
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
        detail=_detail(core, round_, used, done) | ({"flagged": flagged} if flagged else {}),
    )
    core.out.append(Commit(round_.t, round_.p, version))


def _detail(core: SyncerCore, round_: Round, used: list[Contribution], done: MergeDone) -> dict[str, Any]:
    """What the record of a merge holds beyond the columns of all kinds, see `records.DETAILS`."""
    settings, version = round_.settings, core.state.versions[round_.p]
    weigh = WEIGHTS[settings.weights]
    return {
        "learners": list(round_.merging),
        "steps_captured": [c.step for c in used],
        "c_steps": [c.steps for c in used],
        "c_tokens": [c.tokens for c in used],
        "weights": [weigh(c.steps, c.tokens, version - c.base_version) for c in used],
        "base_versions": [c.base_version for c in used],
        "norms": done.norms,
        "cosines": done.cosines,
        "digests": done.digests,
        "norm": done.norm,
        "outer_digest": done.outer_digest,
        "weights_rule": settings.weights,
        "fresh_outer": round_.fresh_outer,
        "outer": settings.outer,
        "outer_rate": settings.outer_rate,
        "outer_momentum": settings.outer_momentum,
        "first_ready_ns": round_.first_ready_at,
        "quorum_ns": round_.quorum_at,
        "grace_ns": round_.grace_ended_at,
        "pull_ns": round_.merge_at,
        "merge_ns": core.now,
    }


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
    starvation.count(core, round_)
    _close(core, round_)
    updates.broadcast(core, p, round_.grace_ended_at)


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
    updates.notify(core, round_.t)


def _close(core: SyncerCore, round_: Round) -> None:
    for contribution in round_.here.values():
        if contribution.handle >= 0:
            core.out.append(Release(contribution.handle))
    del core.state.rounds[round_.t]
    pacer.renew_closed_below(core.state)
