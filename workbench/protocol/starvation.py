"""Learners that are connected and healed and never merged: counted, with the cause and the remedy (section 3)."""

from __future__ import annotations

from workbench.protocol.records import Kind, process_of
from workbench.protocol.round_state import Round
from workbench.protocol.syncer_core import SyncerCore

CAUSES = {
    "base_differs": "base_behind",
    "update_unfolded": "base_behind",
    "stale": "base_behind",
    "late": "pull_limit",
    "unanswered": "pull_limit",
    "rejoined": "not_fresh",
}
"""Reasons of refusals and drops that are one of the five causes under another name; other words stay."""

REMEDIES = {
    "not_ready": "eligibility = paced",
    "not_fresh": "eligibility = paced, or a larger grace_cap_steps",
    "no_steps": "a larger period, or a smaller batch",
    "base_behind": "anchor = base, or a larger period",
    "pull_limit": "a smaller fragment or codec, or a larger pull_limit_min_s",
}
"""What helps a learner that is left out for this cause."""


def cause_of(reason: str) -> str:
    """The cause that a reason of a refusal or a drop stands for."""
    return CAUSES.get(reason, reason)


def count(core: SyncerCore, round_: Round) -> None:
    """A round was closed: count who was left out, and say so after 2 H rounds in a row."""
    state = core.state
    limit = 2 * state.fixed.period
    for member in state.members.values():
        if member.learner in round_.merging:
            member.rounds_missed = 0
            member.missed_why = {}
            continue
        if not (member.connected and member.healed) or member.quarantined:
            continue
        cause = _cause(core, round_, member.learner)
        member.rounds_missed += 1
        member.missed_why[cause] = member.missed_why.get(cause, 0) + 1
        if member.rounds_missed >= limit:
            _report(core, member.learner)


def _cause(core: SyncerCore, round_: Round, learner: int) -> str:
    """Why its work is in no merge of this round; who was not there yet when grace ended came too late for it."""
    if learner in round_.here:
        return "round_skipped"
    late = "not_ready" if core.state.book.policy.eligibility == "step" else "not_fresh"
    return cause_of(round_.left_out.get(learner, late))


def _report(core: SyncerCore, learner: int) -> None:
    member = core.state.members[learner]
    cause = max(sorted(member.missed_why), key=lambda why: member.missed_why[why])
    core.record(
        Kind.LEARNER_STARVED,
        peer=process_of(learner),
        reason=cause,
        steps=member.rounds_missed,
        detail={"causes": dict(member.missed_why), "remedy": REMEDIES.get(cause, "")},
    )
    member.rounds_missed = 0
    member.missed_why = {}
