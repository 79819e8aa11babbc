"""How long quorum and sync take, as moving averages (PROTOCOL section 4)."""

from __future__ import annotations

from workbench.protocol.clocks import EMA_FACTOR
from workbench.protocol.syncer_state import SyncerState


def sample_quorum(state: SyncerState, wait_ns: int) -> None:
    """xi_quorum: first ready to K-th ready."""
    state.xi_quorum = _sample(state.xi_quorum, wait_ns, state.xi_quorum_known)
    state.xi_quorum_known = True


def sample_sync(state: SyncerState, sync_ns: int) -> None:
    """xi_sync: end of grace to UPDATE handed to the transport."""
    state.xi_sync = _sample(state.xi_sync, sync_ns, state.xi_sync_known)
    state.xi_sync_known = True


def _sample(average: float, sample: float, known: bool) -> float:
    return average + EMA_FACTOR * (sample - average) if known else float(sample)
