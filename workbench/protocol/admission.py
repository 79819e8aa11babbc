"""Who takes part in a round, and how long the round waits (PROTOCOL sections 3 and 4).

The Admission slot: an eligibility rule says who is admitted once a round has a ready learner, a grace
policy says how long the round waits after its quorum.  A new member is one function and one line in a table.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from workbench.protocol.member_state import Member
from workbench.protocol.round_state import Round
from workbench.protocol.settings import SECOND
from workbench.protocol.syncer_state import SyncerState

FOREVER = 2**62


def fresh_for_ns(member: Member) -> int:
    """Age up to which a METADATA counts: 3 x the median step, 1 s at least."""
    return max(3 * member.median_ns, SECOND)


def base_fits(state: SyncerState, member: Member, p: int, base: int) -> bool:
    """Whether work on version ``base`` of fragment ``p`` may enter its next merge."""
    if state.fixed.anchor == "current":
        return base == state.versions[p]
    return 0 <= state.versions[p] - base <= state.fixed.anchors_kept and base >= max(member.last_merged[p], 0)


def is_clean(state: SyncerState, member: Member, p: int, now: int) -> bool:
    """Whether the learner may contribute to fragment ``p`` at all (section 3)."""
    return (
        member.connected
        and member.healed
        and not member.quarantined
        and member.c_steps[p] >= 1
        and not member.blocked[p]
        and not member.anew[p]
        and base_fits(state, member, p, member.base[p])
        and now - member.metadata_at <= fresh_for_ns(member)
    )


def why_not(state: SyncerState, member: Member, round_: Round, now: int) -> str:
    """The cause for which a connected, healed learner is not admitted to a round."""
    p = round_.p
    if member.quarantined:
        return "quarantined"
    if member.anew[p] or not base_fits(state, member, p, member.base[p]):
        return "base_behind"
    if member.c_steps[p] < 1:
        return "no_steps"
    if member.blocked[p]:
        return member.blocked[p]
    if state.book.policy.eligibility == "step":
        return "not_ready"
    return "not_fresh"


def fresh(state: SyncerState, member: Member, round_: Round) -> bool:
    """Ready, or heard of since the first learner became ready (for a clean learner)."""
    return member.g >= round_.t or 0 <= round_.first_ready_at <= member.metadata_at


def step(state: SyncerState, member: Member, round_: Round) -> bool:
    """Ready only (for a clean learner)."""
    return member.g >= round_.t


def paced(state: SyncerState, member: Member, round_: Round) -> bool:
    """Heard of since the previous merge of the fragment (for a clean learner)."""
    return member.metadata_at > state.merged_at[round_.p]


ELIGIBILITY: dict[str, Callable[[SyncerState, Member, Round], bool]] = {"fresh": fresh, "step": step, "paced": paced}
"""Name to rule: is a clean learner admitted?  The quorum always counts ready learners."""


def xi_step_ns(state: SyncerState) -> float:
    """Median over progressing learners of their own moving average of step times [ns]."""
    times = [m.step_ema for m in state.members.values() if m.connected and not m.stalled and m.step_ema >= 0]
    return median(times) if times else 0.0


def no_grace(state: SyncerState) -> int:
    """Close at quorum."""
    return 0


def fixed_grace(state: SyncerState) -> int:
    """``grace_s`` after quorum."""
    return int(state.book.policy.grace_s * SECOND)


def adaptive_window_s(
    overlap: int, step_s: float, quorum_s: float, sync_s: float, gamma: float, cap_steps: float
) -> float:
    """clamp(gamma x (tau xi_step - (xi_quorum + xi_sync)), 0, cap_steps x xi_step) [s], Eq. 3 of arXiv 2604.21428."""
    slack = overlap * step_s - (quorum_s + sync_s)
    return min(max(gamma * slack, 0.0), cap_steps * step_s)


def adaptive_grace(state: SyncerState) -> int:
    """The share gamma of the time that the overlap leaves, up to a cap in steps."""
    policy = state.book.policy
    window = adaptive_window_s(
        state.fixed.overlap,
        xi_step_ns(state),
        state.xi_quorum,
        state.xi_sync,
        policy.grace_gamma,
        policy.grace_cap_steps,
    )
    return int(window)


def grace_for_all(state: SyncerState) -> int:
    """Until every clean learner is admitted."""
    return FOREVER


GRACE: dict[str, Callable[[SyncerState], int]] = {
    "none": no_grace,
    "fixed": fixed_grace,
    "adaptive": adaptive_grace,
    "all": grace_for_all,
}
"""Name to policy: the grace window [ns] of a round that has its quorum."""


def pull_limit_ns(state: SyncerState, members: list[Member]) -> int:
    """max(4 x EMA of pull, pull_limit_min_s) over the pulled, never above the heartbeat limit (section 5)."""
    longest = max((member.pull_ema for member in members), default=-1.0)
    least = int(state.book.policy.pull_limit_min_s * SECOND)
    return min(max(int(4 * longest), least), state.fixed.heartbeat_limit_ns)
