"""How long steps, quorum and sync take, as moving averages (PROTOCOL section 4)."""

from __future__ import annotations

from workbench.protocol.clocks import EMA_FACTOR, ema
from workbench.protocol.member_state import Member
from workbench.protocol.syncer_state import SyncerState

RECENT_STEPS = 50
"""Steps whose durations are kept for the median."""


def sample_quorum(state: SyncerState, wait_ns: int) -> None:
    """xi_quorum: first ready to K-th ready."""
    state.xi_quorum = _sample(state.xi_quorum, wait_ns, state.xi_quorum_known)
    state.xi_quorum_known = True


def sample_sync(state: SyncerState, sync_ns: int) -> None:
    """xi_sync: end of grace to UPDATE handed to the transport."""
    state.xi_sync = _sample(state.xi_sync, sync_ns, state.xi_sync_known)
    state.xi_sync_known = True


def sample_step(member: Member, step_ns: int) -> None:
    """A learner's own step: its moving average (xi_step is the median of these) and the median of its last steps."""
    member.recent.append(step_ns)
    if len(member.recent) > RECENT_STEPS:
        del member.recent[0]
    member.median_ns = sorted(member.recent)[len(member.recent) // 2]
    member.step_ema = ema(member.step_ema, step_ns)


def forget_steps(member: Member) -> None:
    """Another process: its steps may take another time."""
    member.recent = []
    member.median_ns = 0
    member.step_ema = -1.0


def _sample(average: float, sample: float, known: bool) -> float:
    return average + EMA_FACTOR * (sample - average) if known else float(sample)
