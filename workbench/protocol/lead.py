"""How far a learner may run ahead of the oldest round that is not closed (PROTOCOL section 9)."""

from __future__ import annotations

from workbench.protocol.learner_state import LearnerState
from workbench.protocol.slots import SYNC_TRIGGERS


def must_wait(state: LearnerState) -> bool:
    """Whether the next step has to wait; never without a lead."""
    if state.settings.lead is None:
        return False
    if min(state.base) < 0:
        return True
    last = state.g - state.settings.lead
    waiting = False
    t, p = SYNC_TRIGGERS["staggered"](state.closed_below - 1, state.fixed)
    while t <= last:
        if t not in state.closed:
            if _is_what_it_lacks(state, p):
                return False
            waiting = True
        t, p = SYNC_TRIGGERS["staggered"](t, state.fixed)
    return waiting


def _is_what_it_lacks(state: LearnerState, p: int) -> bool:
    """The waited-for round lacks this learner's own work: it holds the fragment and has no step on it."""
    return state.base[p] >= 0 and state.c_steps[p] == 0
