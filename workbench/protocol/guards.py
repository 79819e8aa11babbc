"""Guards: contributions that are refused for what they hold, and learners that are flagged (DESIGN section 5).

A guard decides on numbers that arithmetic has measured and that came with an input, so that whoever gives the machine
the same inputs gets the same decisions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from workbench.protocol import quarantine, updates
from workbench.protocol.actions import Release
from workbench.protocol.events import MergeDone
from workbench.protocol.member_state import Member
from workbench.protocol.records import Kind, process_of
from workbench.protocol.round_state import PullState, Round
from workbench.protocol.syncer_core import SyncerCore

NORMS_KEPT, NORMS_NEEDED = 8, 3
"""Norms of a learner's own merged contributions to a fragment that are kept, and without which there is no verdict."""
COSINE_LEAST, ROUNDS_RUNNING = -0.3, 3
"""Below this cosine a contribution is against the others; after so many rounds running its learner is flagged."""
OTHERS_NEEDED = 2
"""Of two contributions that are against each other nobody can say which is the wrong one."""
POISON = ("nonfinite", "guard", "shape")
"""Reasons of refusals for what a contribution holds."""
REFUSED = ("nonfinite", "guard")
"""Those after which its learner has to fold the fragment anew."""


def after_drop(core: SyncerCore, member: Member, round_: Round | None, p: int, reason: str) -> None:
    """Not clean for the fragment until newer METADATA; after bad numbers, until it is folded anew."""
    if reason == "duplicate":
        return
    member.blocked[p] = reason
    pull = round_.pulls.get(member.learner) if round_ is not None else None
    if round_ is not None and pull is not None and pull.state in (PullState.OUTSTANDING, PullState.ARRIVED):
        pull.state = PullState.DROPPED
        round_.left_out[member.learner] = reason
    if reason in REFUSED:
        core.state.anew_serial += 1
        member.anew[p] = core.state.anew_serial
        if round_ is not None:
            round_.guarded.append(member.learner)
        updates.enqueue(core, member, p)
    if reason in POISON:
        member.poisonings += 1
        quarantine.judge(core, member, reason)


def refuse_norms(core: SyncerCore, round_: Round) -> None:
    """Refuse what is far larger than the others of the round and than what its learner sent before.

    Both may be exceeded in proportion by a contribution of more own steps: a learner that comes back after it was
    stopped or cut off has trained for longer.
    """
    factor = core.state.book.policy.guard_norm
    if not factor:
        return
    here = dict(sorted(round_.here.items()))
    for learner, contribution in here.items():
        norm, steps = contribution.norm, contribution.steps
        member = core.state.members[learner]
        others = [c for other, c in here.items() if other != learner]
        own = member.norms.get(round_.p, [])
        if not others or len(own) < NORMS_NEEDED:
            continue
        of_others, of_own = median(c.norm for c in others), median(own)
        longer_than_others = max(1.0, steps / median(c.steps for c in others))
        longer_than_before = max(1.0, steps / median(member.norm_steps[round_.p]))
        if norm > factor * of_others * longer_than_others and norm > factor * of_own * longer_than_before:
            _refuse(core, round_, learner, {"guard": "norm", "norm": norm, "others": of_others, "own": of_own})


def refuse_opposed(core: SyncerCore, round_: Round, done: MergeDone) -> bool:
    """Refuse the one contribution that is most against the others, if its learner is flagged; whether there was one.

    The others are then merged anew, and judged by their cosines to each other.
    """
    if not core.state.book.policy.guard_cosine:
        return False
    against = [
        (cosine, learner)
        for learner, cosine in _against(round_.merging, done.cosines)
        if core.state.members[learner].opposed + 1 >= ROUNDS_RUNNING
    ]
    if not against:
        return False
    cosine, learner = min(against)
    member = core.state.members[learner]
    member.opposed += 1
    _refuse(core, round_, learner, {"guard": "cosine", "cosine": cosine, "rounds": member.opposed})
    return True


def count_merge(
    members: dict[int, Member],
    p: int,
    learners: Sequence[int],
    steps: Sequence[int],
    norms: Sequence[float],
    cosines: Sequence[float],
) -> list[int]:
    """Keep norms and own steps of merged contributions, and who was against the others; returns who is flagged."""
    against = dict(_against(learners, cosines))
    for learner, made, norm in zip(learners, steps, norms, strict=True):
        member = members[learner]
        member.poisonings = 0
        if 0.0 < norm < math.inf:
            member.norms[p] = [*member.norms.get(p, []), norm][-NORMS_KEPT:]
            member.norm_steps[p] = [*member.norm_steps.get(p, []), made][-NORMS_KEPT:]
        if len(learners) > OTHERS_NEEDED:
            member.opposed = member.opposed + 1 if learner in against else 0
    return [learner for learner in learners if members[learner].opposed >= ROUNDS_RUNNING]


def count_refusal(member: Member, reason: str, detail: dict[str, Any]) -> None:
    """A refusal as a journal tells it."""
    member.poisonings += reason in POISON
    member.opposed += detail.get("guard") == "cosine"


def _against(learners: Sequence[int], cosines: Sequence[float]) -> list[tuple[int, float]]:
    """Learners whose contributions are against the mean of the others; none where there are too few others."""
    if len(learners) <= OTHERS_NEEDED:
        return []
    return [(m, cosine) for m, cosine in zip(learners, cosines, strict=True) if cosine < COSINE_LEAST]


def _refuse(core: SyncerCore, round_: Round, learner: int, measured: dict[str, Any]) -> None:
    """A contribution that is here is not merged; its learner folds the fragment anew."""
    contribution = round_.here.pop(learner)
    core.record(
        Kind.FRAGMENT_DROPPED,
        peer=process_of(learner),
        round=round_.t,
        fragment=round_.p,
        base_version=contribution.base_version,
        step=contribution.step,
        steps=contribution.steps,
        tokens=contribution.tokens,
        reason="guard",
        digest=contribution.digest,
        detail=measured,
    )
    if contribution.handle >= 0:
        core.out.append(Release(contribution.handle))
    after_drop(core, core.state.members[learner], round_, round_.p, "guard")
