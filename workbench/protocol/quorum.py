"""Whether a quorum is possible (PROTOCOL section 10)."""

from __future__ import annotations

from workbench.protocol.moments import UNSET
from workbench.protocol.records import Kind, label_of, process_of
from workbench.protocol.settings import SECOND
from workbench.protocol.syncer_core import SyncerCore
from workbench.protocol.syncer_state import SyncerState

SHORT_LIMIT_NS = 3 * SECOND // 4
"""For so long fewer than K may be there at the start until that is said: within 1 s."""


def expect(core: SyncerCore) -> None:
    """Before rounds begin: the first learners come one after the other, fewer than K for long is worth a word."""
    state = core.state
    if state.began or state.ending or not state.members:
        return
    if len(core.possible()) >= state.book.policy.quorum:
        state.short_since = UNSET
    elif state.short_since == UNSET:
        state.short_since = core.now
    elif core.now >= state.short_since + SHORT_LIMIT_NS:
        judge(core, late=True)


def expected(state: SyncerState) -> list[int]:
    """Learners of the run as it is now: those that it began with and those added, without those removed."""
    return [m for m in (*range(state.fixed.learners), *state.added) if m not in state.removed]


def quarantined(state: SyncerState) -> list[int]:
    """Learners that would count but for their quarantine, which only somebody's release ends."""
    return [m for m in expected(state) if m in state.members and state.members[m].quarantined]


def judge(core: SyncerCore, late: bool = False) -> None:
    """Say at once when fewer than K learners could ever become ready, and when that is over.

    Before rounds begin it is said when it is ``late``, see `expect`.
    """
    state = core.state
    possible, quorum = core.possible(), state.book.policy.quorum
    if state.ending or not (state.began or state.quorum_lost or late):
        return
    if len(possible) < quorum and not state.quorum_lost:
        state.quorum_lost = True
        present = {m.learner for m in possible}
        missing = [label_of(process_of(m)) for m in expected(state) if m not in present]
        kept_out = [label_of(process_of(m)) for m in quarantined(state)]
        detail = {"missing": missing} | ({"quarantined": kept_out} if kept_out else {})
        why = "quarantined" if kept_out else ""
        core.record(Kind.QUORUM_LOST, value=float(len(possible)), steps=quorum, reason=why, detail=detail)
    elif len(possible) >= quorum and state.quorum_lost:
        state.quorum_lost = False
        core.record(Kind.QUORUM_REGAINED, value=float(len(possible)), steps=quorum)
